# SPDX-License-Identifier: GPL-2.0-or-later
#
# The commands that people type; meson and ninja do the work. BUILD= names another build folder.

BUILD ?= build

NINJA = ninja -C $(BUILD) $(filter -j%,$(MAKEFLAGS))

all: $(BUILD)/build.ninja
	@$(NINJA)

$(BUILD)/build.ninja:
	@mkdir -p $(BUILD) && cd $(BUILD) && $(CURDIR)/configure

help:
	@echo 'make              build into build/'
	@echo 'make demo         boot Linux and the bare-metal guest; show what polling gains'
	@echo 'make check        all tests, also under ASan+UBSan and TSan (build-asan/, build-tsan/)'
	@echo 'make check-quick  tree checks, unit, device and driver tests in build/ only'
	@echo 'make check-long   the big counts: hours'
	@echo 'make bench        measure, beside stock QEMU'
	@echo 'make install      into the prefix of ./configure --prefix=DIR; DESTDIR is honoured'
	@echo 'make clean        remove what was compiled; distclean: remove the build folders'

deps:
	@scripts/install-deps.sh

demo: deps
	@$(MAKE) --no-print-directory all
	@scripts/demo

check: deps
	@scripts/check

check-quick:
	@scripts/check --quick

check-long: deps
	@scripts/check --long

bench: deps
	@$(MAKE) --no-print-directory all
	@scripts/bench

install: all
	@meson install -C $(BUILD) --no-rebuild

clean:
	@for d in $(BUILD) build-asan build-tsan; do \
	    if [ -f $$d/build.ninja ]; then ninja -C $$d -t clean; fi; done

distclean:
	@rm -rf $(BUILD) build-asan build-tsan

.PHONY: all help deps demo check check-quick check-long bench install clean distclean
