# The few commands people type.
.PHONY: run test bench lint docs wheel

# The tour: simulate, train, evaluate, write report.html.
run:
	cargo run --release --package maxmargin-cli --bin maxmargin -- demo

# Everything that must hold: formatting, lints, tests of the library, the formats and the command, examples in the docs,
# and the Python package as it is installed.
test: lint
	scripts/test
	scripts/test-python

# The Python package as it is shipped, into target/wheels.
wheel:
	scripts/wheel target/wheels

# Side by side with other programs, in one run; see bench/README.md.
bench:
	bench/run

lint:
	scripts/structure
	cargo fmt --all --check
	cargo clippy --profile checked --workspace --all-targets -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps
