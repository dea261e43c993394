//! The `watershed` program: everything is in the library's `cli` module.
use std::process::ExitCode;

/// Large systems are arrays that the cache is too small for, and this allocator begins them at lines of it. Without huge
/// pages: a machine that must find them first loses more than they save.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    watershed::cli::main(watershed::scenario::ENGINES)
}
