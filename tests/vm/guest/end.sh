# SPDX-License-Identifier: GPL-2.0-or-later
#
# Have the harness end the VMM by a signal while the disks are at rest.

say end "$count"
ask end
sleep 60
