//! Tests: whatever a disk refuses, and wherever a process is killed, the file that was there stands, or the new one does.

#[path = "../campaign/share.rs"]
mod share;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod every_write_may_fail;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod tracer;

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
#[test]
fn writes_are_made_to_fail_on_another_system() {
    println!("writes are made to fail on Linux on x86-64 only: nothing was tried");
}
