//! A program under trace, one of whose operations on a folder's files fails. The program knows nothing of it.
//!
//! What counts: to open a file for writing, to write, to cut or flush it, to rename, to make a folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::libc::{self, user_regs_struct};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// What happens at an operation, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    Never,
    /// It does nothing and says that the disk is full, or cannot be written.
    Fails(u64),
    /// The same, and so does every later one that needs room.
    Full(u64),
    /// A write writes half of its bytes, and the next one fails.
    Half(u64),
    /// The process is killed before it.
    Dies(u64),
}

/// What a traced program left.
pub struct Traced {
    /// Its status; `None` if it was killed.
    pub status: Option<i32>,
    /// What it said, on the standard output and on the standard error.
    pub said: String,
    /// Operations that it asked for.
    pub operations: u64,
    /// The file whose flush failed.
    pub unflushed: Option<PathBuf>,
}

/// What a system call is to the disk.
enum Operation {
    /// It needs room.
    Grows,
    /// It flushes.
    Flushes,
}

struct Tracer<'a> {
    folder: &'a Path,
    fault: Fault,
    operations: u64,
    /// The next write fails, whatever its number.
    cut: bool,
    unflushed: Option<PathBuf>,
    /// Tasks within a system call, with what it answers instead of being done.
    within: BTreeMap<i32, Option<i64>>,
}

impl Tracer<'_> {
    /// A text in the memory of a task.
    fn text(task: Pid, at: u64) -> Option<PathBuf> {
        let mut memory = File::open(format!("/proc/{task}/mem")).ok()?;
        memory.seek(SeekFrom::Start(at)).ok()?;
        let mut bytes = Vec::new();
        let mut piece = [0; 64];
        while !bytes.contains(&0) {
            let read = memory.read(&mut piece).ok().filter(|&read| read > 0)?;
            bytes.extend(&piece[..read]);
        }
        bytes.truncate(bytes.iter().position(|&byte| byte == 0)?);
        Some(PathBuf::from(OsString::from_vec(bytes)))
    }

    /// Whether a name, relative to the folder of the process, is in the folder that is watched.
    fn is_named(&self, task: Pid, at: u64) -> bool {
        Self::text(task, at).is_some_and(|path| path.is_relative() || path.starts_with(self.folder))
    }

    fn is_open(&self, task: Pid, descriptor: u64) -> bool {
        fs::read_link(format!("/proc/{task}/fd/{descriptor}")).is_ok_and(|path| path.starts_with(self.folder))
    }

    fn operation(&self, task: Pid, registers: &user_regs_struct) -> Option<Operation> {
        let user_regs_struct { orig_rax, rdi, rsi, rdx, .. } = *registers;
        let creates = |flags: u64| flags as i32 & (libc::O_CREAT | libc::O_TRUNC) != 0;
        let (counts, operation) = match orig_rax as i64 {
            libc::SYS_openat => (creates(rdx) && self.is_named(task, rsi), Operation::Grows),
            libc::SYS_open => (creates(rsi) && self.is_named(task, rdi), Operation::Grows),
            libc::SYS_write
            | libc::SYS_pwrite64
            | libc::SYS_writev
            | libc::SYS_ftruncate
            | libc::SYS_copy_file_range => (self.is_open(task, rdi), Operation::Grows),
            libc::SYS_fsync | libc::SYS_fdatasync => (self.is_open(task, rdi), Operation::Flushes),
            libc::SYS_rename | libc::SYS_mkdir => (self.is_named(task, rdi), Operation::Grows),
            libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_mkdirat => {
                (self.is_named(task, rsi), Operation::Grows)
            }
            _ => (false, Operation::Grows),
        };
        counts.then_some(operation)
    }

    /// A task enters a system call: what it will answer if it is not done. An error ends the trace.
    fn enter(&mut self, task: Pid, mut registers: user_regs_struct) -> nix::Result<Option<i64>> {
        let Some(operation) = self.operation(task, &registers) else { return Ok(None) };
        self.operations += 1;
        let now = self.operations;
        let is_write = registers.orig_rax as i64 == libc::SYS_write;
        let fails = match self.fault {
            Fault::Never => false,
            Fault::Fails(at) => now == at,
            Fault::Full(at) => now >= at && (now == at || matches!(operation, Operation::Grows)),
            Fault::Half(at) if now == at && is_write && registers.rdx > 1 => {
                registers.rdx /= 2;
                ptrace::setregs(task, registers)?;
                self.cut = true;
                false
            }
            Fault::Half(at) => now == at || is_write && std::mem::take(&mut self.cut),
            Fault::Dies(at) => {
                if now == at {
                    kill(task, Signal::SIGKILL)?;
                }
                false
            }
        };
        if !fails {
            return Ok(None);
        }
        registers.orig_rax = u64::MAX;
        ptrace::setregs(task, registers)?;
        if matches!(operation, Operation::Grows) {
            return Ok(Some(-i64::from(libc::ENOSPC)));
        }
        self.unflushed = fs::read_link(format!("/proc/{task}/fd/{}", registers.rdi)).ok();
        Ok(Some(-i64::from(libc::EIO)))
    }

    fn stop(&mut self, task: Pid) -> nix::Result<()> {
        let mut registers = ptrace::getregs(task)?;
        if let Some(answer) = self.within.remove(&task.as_raw()) {
            if let Some(answer) = answer {
                registers.rax = answer as u64;
                ptrace::setregs(task, registers)?;
            }
        } else if registers.rax as i64 == -i64::from(libc::ENOSYS) {
            let answer = self.enter(task, registers)?;
            self.within.insert(task.as_raw(), answer);
        }
        Ok(())
    }
}

/// Runs the program in a folder and lets an operation on its files fail; `None` if processes cannot be traced here.
#[expect(clippy::zombie_processes, reason = "whoever traces a process waits for it")]
pub fn run(program: &str, folder: &Path, words: &[&str], fault: Fault) -> Option<Traced> {
    let folder = fs::canonicalize(folder).unwrap();
    let said = tempfile::NamedTempFile::new().unwrap();
    let both = || fs::OpenOptions::new().append(true).open(said.path()).unwrap();
    // It waits to be traced.
    let child = Command::new("sh")
        .args(["-c", "kill -STOP $$; exec \"$0\" \"$@\"", program])
        .args(words)
        .current_dir(&folder)
        .env_remove("CI")
        .stdin(Stdio::null())
        .stdout(both())
        .stderr(both())
        .spawn()
        .unwrap();
    let process = Pid::from_raw(child.id() as i32);
    waitpid(process, Some(WaitPidFlag::WUNTRACED)).unwrap();
    let options = Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL;
    if let Err(error) = ptrace::seize(process, options) {
        println!("processes cannot be traced here, so no write is made to fail: {error}");
        let _ = kill(process, Signal::SIGKILL);
        let _ = waitpid(process, None);
        return None;
    }
    kill(process, Signal::SIGCONT).unwrap();
    let mut tracer =
        Tracer { folder: &folder, fault, operations: 0, cut: false, unflushed: None, within: BTreeMap::new() };
    let status = loop {
        // Only what this thread traces: other tests have processes of their own.
        let waited = waitpid(None, Some(WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD)).unwrap();
        let (task, signal) = match waited {
            WaitStatus::Exited(task, status) if task == process => break Some(status),
            WaitStatus::Signaled(task, ..) if task == process => break None,
            WaitStatus::PtraceSyscall(task) => {
                // A task that was killed is gone; its end is told next.
                let _ = tracer.stop(task);
                (task, None)
            }
            WaitStatus::Stopped(task, signal) => (task, Some(signal)),
            WaitStatus::PtraceEvent(task, ..) => (task, None),
            _ => continue,
        };
        let _ = ptrace::syscall(task, signal);
    };
    let said = fs::read_to_string(said.path()).unwrap();
    Some(Traced { status, said, operations: tracer.operations, unflushed: tracer.unflushed })
}
