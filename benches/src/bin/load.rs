//! The load generator as a program of its own; see `load --help`.

fn main() {
    std::process::exit(sprat_bench::load::cli::main(std::env::args_os().skip(1)));
}
