"""Language models as proposers: asked in the background, paid for by a ledger, never asked the same thing twice.

settings, history ──► question ──► Chat (in flight) ──► reply ──► candidate
                         ▲                                │
                         └──── one repair of a failure ◄──┴──► stored, so that a resumed run pays nothing twice
"""
