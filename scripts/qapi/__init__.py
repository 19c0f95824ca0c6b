# SPDX-License-Identifier: GPL-2.0-or-later
"""The schema in qapi/: parser, checks, and C from it. See docs/devel/qapi.md."""
