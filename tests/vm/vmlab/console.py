# SPDX-License-Identifier: GPL-2.0-or-later
"""
The report lines of a guest on its serial line.

    @@begin RELEASE         the guest's init runs
    @@ok|bad|skip TEXT      one check
    @@note TEXT             explains what follows
    @@file NAME ... @@eof BYTES   a file: gzip, base64, length of the gzip data
    @@ask WORD...           the guest waits for one line of input
    @@again COUNT           the guest is about to reset the machine and to start again
    @@end COUNT             how many checks there were since it began

Anything else is the kernel's or the firmware's and kept in the log only.
"""

import base64
import binascii
import gzip
import zlib


class Report:
    """Parses lines as they come; `checks` is a list of (verdict, text, notes)."""

    def __init__(self):
        self.release = None
        self.checks = []
        self.files = {}
        self.ended = False
        self.trouble = []
        self._notes = []
        self._counted = 0
        self._file = None
        self._lines = []

    def feed(self, line):
        """Take one line; returns the words of a question, or None."""
        if self._file is not None and not line.startswith("@@"):
            self._lines.append(line)
            return None
        # A line may follow something that did not end its own.
        at = line.find("@@")
        if at < 0:
            return None
        word, _, rest = line[at + 2:].strip().partition(" ")
        if word == "begin":
            self.release = rest
        elif word in ("ok", "bad", "skip"):
            self.checks.append((word, rest, self._notes))
            self._notes = []
        elif word == "note":
            self._notes.append(rest)
        elif word == "file":
            self._file, self._lines = rest, []
        elif word == "eof":
            self._finish_file(rest)
        elif word in ("end", "again"):
            self.ended = word == "end"
            arrived = len(self.checks) - self._counted
            self._counted = len(self.checks)
            if rest != str(arrived):
                self.trouble.append(f"the guest counted {rest} checks, {arrived} arrived")
        elif word == "ask":
            return rest.split()
        return None

    def _finish_file(self, length):
        name, self._file = self._file, None
        try:
            data = base64.b64decode("".join(self._lines), validate=True)
            if str(len(data)) != length:
                raise ValueError(f"{len(data)} bytes of {length}")
            self.files[name] = gzip.decompress(data)
        except (ValueError, binascii.Error, OSError, EOFError, zlib.error) as why:
            self.trouble.append(f"file {name} arrived damaged: {why}")
