//! x
fn main() {
    std::process::exit(sprat_bench::load::cli::main(std::env::args_os().skip(1)));
}
