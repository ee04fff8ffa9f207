"""The three stages of training: supervised, self-supervised, contrastive. Importable without torch and transformers."""
