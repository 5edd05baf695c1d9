//! The allocator of the extension: freed memory goes back to the system.
//!
//! The pool of the C library keeps large blocks once a block of their size has been freed, so the memory of one fit
//! stayed allocated during the next. The command sets a limit for its whole process (`return_freed_memory`). An
//! extension in a user's interpreter must not do that, because it would slow down the arrays of other libraries. So
//! this allocator maps blocks from a certain size on itself and leaves the rest to the pool.
//!
//! Unmapping a gigabyte takes a tenth of a second or more, which is too long after Ctrl-C. While a job is being
//! abandoned ([`free_later`]), freed blocks are only listed, and a separate thread unmaps them when the job has ended.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// See the module documentation.
pub(crate) struct Returning;

/// Blocks from this size on are mapped. A system call and the first touch of the pages cost little compared with
/// filling them.
const LARGE: usize = 256 << 10;

/// The minimum alignment of mappings, for any page size.
const PAGE: usize = 4096;

/// A block that is still to be unmapped. The entry is stored inside the block, because nothing can be allocated here.
struct Listed {
    next: *mut Listed,
    size: usize,
}

/// The last of them.
static LISTED: AtomicPtr<Listed> = AtomicPtr::new(null_mut());

/// Number of jobs that are being abandoned.
static GIVEN_UP: AtomicUsize = AtomicUsize::new(0);

/// Until this is dropped, blocks are listed instead of unmapped; then a thread unmaps them.
pub(crate) struct FreeingLater(());

/// The end of a job does not wait for its memory to be unmapped while this value lives.
pub(crate) fn free_later() -> FreeingLater {
    GIVEN_UP.fetch_add(1, Ordering::SeqCst);
    FreeingLater(())
}

impl Drop for FreeingLater {
    fn drop(&mut self) {
        GIVEN_UP.fetch_sub(1, Ordering::SeqCst);
        let listed = !LISTED.load(Ordering::SeqCst).is_null();
        if listed && std::thread::Builder::new().spawn(unmap_listed).is_err() {
            unmap_listed();
        }
    }
}

fn list(block: *mut u8, size: usize) {
    let listed: *mut Listed = block.cast();
    let mut next = LISTED.load(Ordering::Relaxed);
    loop {
        // SAFETY: a mapping of ours that is no longer used, aligned to a page and longer than this.
        unsafe { listed.write(Listed { next, size }) };
        match LISTED.compare_exchange_weak(next, listed, Ordering::SeqCst, Ordering::Relaxed) {
            Ok(_) => break,
            Err(other) => next = other,
        }
    }
    // The thread that should unmap it may have finished just before.
    if GIVEN_UP.load(Ordering::SeqCst) == 0 {
        unmap_listed();
    }
}

/// Pages are released in parts, if the system supports it, so that a thread that maps memory waits for one part and not
/// for all.
const PART: usize = 16 << 20;

fn unmap_listed() {
    let mut block = LISTED.swap(null_mut(), Ordering::SeqCst);
    while !block.is_null() {
        // SAFETY: the thread that takes the list owns all of it, and each block is a whole mapping with its size stored
        // inside.
        unsafe {
            let Listed { next, size } = block.read();
            for part in (PART..size).step_by(PART) {
                // If that fails, the pages are released with the whole block.
                let _ = libc::madvise(block.cast::<u8>().add(part).cast(), PART.min(size - part), libc::MADV_DONTNEED);
            }
            unmap(block.cast(), size);
            block = next;
        }
    }
}

fn is_mapped(layout: &Layout) -> bool {
    layout.size() >= LARGE && layout.align() <= PAGE
}

// SAFETY: the system's allocator, or mappings of at least the requested size, aligned to a page. The layout alone
// decides which of the two holds a block, so each block is freed where it came from. A block that grows or shrinks past
// the limit moves from one to the other.
unsafe impl GlobalAlloc for Returning {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapped(&layout) { map(layout.size()) } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // New mappings are zero.
        if is_mapped(&layout) { map(layout.size()) } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        match is_mapped(&layout) {
            true if GIVEN_UP.load(Ordering::Relaxed) > 0 => list(block, layout.size()),
            // SAFETY: mapped above with exactly this size.
            true => unsafe { unmap(block, layout.size()) },
            false => unsafe { System.dealloc(block, layout) },
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees size and alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        match (is_mapped(&layout), is_mapped(&wanted)) {
            (false, false) => unsafe { System.realloc(block, layout, size) },
            // SAFETY: mapped above with exactly this size.
            (true, true) => unsafe { remap(block, layout.size(), size) },
            _ => {
                let moved = unsafe { self.alloc(wanted) };
                if !moved.is_null() {
                    // SAFETY: two blocks, each at least as long as what is copied.
                    unsafe {
                        std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                        self.dealloc(block, layout);
                    }
                }
                moved
            }
        }
    }
}

fn map(size: usize) -> *mut u8 {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping does not affect existing memory.
    let block = unsafe { libc::mmap(null_mut(), size, access, kind, -1, 0) };
    if block == libc::MAP_FAILED { null_mut() } else { block.cast() }
}

unsafe fn unmap(block: *mut u8, size: usize) {
    // SAFETY: a whole mapping of ours. This fails only if the system has no memory to record it; the mapping then
    // stays.
    let _ = unsafe { libc::munmap(block.cast(), size) };
}

unsafe fn remap(block: *mut u8, size: usize, wanted: usize) -> *mut u8 {
    // SAFETY: a whole mapping of ours, which may move.
    let moved = unsafe { libc::mremap(block.cast(), size, wanted, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED { null_mut() } else { moved.cast() }
}
