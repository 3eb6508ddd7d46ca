"""The fault campaign, `make faults`: kills, full disks, missing tools, hostile servers.

Each campaign disturbs builds or fetches, and prints how many faults it tried and how they ended; see ``tally``.
docs/reliability.md has the figures.
"""
