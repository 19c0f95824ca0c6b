# SPDX-License-Identifier: GPL-2.0-or-later
#
# Run fio as the harness says (vmlab/linux.py) and send what it measured. A job is
# NAME SERIAL OPTION...; the options are fio's.

while ask job && [ -n "$answer" ] && [ "$answer" != done ]; do
    set -- $answer
    name=$1
    disk "$2" || continue
    shift 2
    ask sample begin "$name"
    check "fio $name" fio --name="$name" --filename="/dev/$d" --output-format=json \
        --output=/tmp/fio.json --eta=never "$@"
    ask sample end "$name"
    send "$name.json" </tmp/fio.json
done
