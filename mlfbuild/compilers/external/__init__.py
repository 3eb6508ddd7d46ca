"""What compilers that are somebody else's programs have in common: how they run, and what becomes of their archives."""
