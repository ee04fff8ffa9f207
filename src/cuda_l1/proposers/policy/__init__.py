"""A trained checkpoint as proposer: it writes in this process, in batches, while nothing else is measured.

checkpoint ──► Policy (weights, tokenizer) ──► replies, a batch at a time ──► candidates
                   ▲                              │
    prompts ───────┘                              └──► stored, so that a resumed run takes them up first
"""
