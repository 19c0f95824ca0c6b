# SPDX-License-Identifier: GPL-2.0-or-later
"""Boot stock Linux under a VMM, on KVM here or inside an emulated test host."""


class Missing(Exception):
    """What this machine lacks, in one line: the caller skips by that name."""
