//! Safe wrapper of PCRE2. Patterns are compiled once and may be used by any thread; each search has limits.
//!
//! PCRE2 backtracks, so a pattern may take exponential time. A search fails after [`MATCH_LIMIT`] steps,
//! which take about a second, or if it needs more than [`HEAP_LIMIT_KIB`]. A caller that searches repeatedly
//! checks for KILL between searches.
//!
//! The bundled C source is linked statically (`PCRE2_SYS_STATIC` in `.cargo/config.toml`).

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr::{self, NonNull};

use cohort_base::StackFloor;
use pcre2_sys as sys;

/// Maximum steps of a search, PCRE2's default.
const MATCH_LIMIT: u32 = 10_000_000;

/// Maximum memory of a search for backtracking.
const HEAP_LIMIT_KIB: u32 = 64 << 10;

/// Options for compiling a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PatternOptions {
    pub ignore_case: bool,
    /// Pattern and text are UTF-8, with Unicode character classes; otherwise they are bytes.
    pub unicode: bool,
}

/// A compiled pattern.
pub(crate) struct Pattern {
    code: NonNull<sys::pcre2_code_8>,
    unicode: bool,
}

// SAFETY: PCRE2 does not modify a compiled pattern, which is not JIT-compiled. Each search modifies only its
// own match data.
unsafe impl Send for Pattern {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pattern {}

/// Byte ranges of the groups of a match; group 0 is the whole match.
pub(crate) struct Groups {
    ranges: Vec<Option<Range<usize>>>,
}

impl Groups {
    /// Returns the range of the whole match.
    pub fn whole(&self) -> Range<usize> {
        self.get(0).unwrap_or_default()
    }

    /// Returns the range of a group, `None` if it did not participate in the match.
    pub fn get(&self, n: usize) -> Option<Range<usize>> {
        self.ranges.get(n).cloned().flatten()
    }
}

/// Returns the message of a PCRE2 error.
fn message_of(code: c_int) -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the buffer is valid for its length.
    let length = unsafe { sys::pcre2_get_error_message_8(code, buffer.as_mut_ptr(), buffer.len()) };
    match usize::try_from(length) {
        Ok(length) => String::from_utf8_lossy(&buffer[..length]).into_owned(),
        Err(_) => format!("pcre_exec: Internal error ({code})"),
    }
}

/// Checks the stack at each nesting level of a pattern during compilation. A result other than 0 ends it.
unsafe extern "C" fn stack_guard(_: u32, _: *mut c_void) -> c_int {
    c_int::from(StackFloor::current().is_reached())
}

impl Pattern {
    /// Compiles a pattern. The error has MariaDB's text.
    pub fn compile(pattern: &[u8], options: PatternOptions) -> Result<Pattern, String> {
        let mut flags = 0;
        if options.unicode {
            flags |= sys::PCRE2_UTF | sys::PCRE2_UCP;
        }
        if options.ignore_case {
            flags |= sys::PCRE2_CASELESS;
        }
        let (mut code, mut offset) = (0, 0);
        // SAFETY: a null pointer requests the default allocator; the context is freed below.
        let context = unsafe { sys::pcre2_compile_context_create_8(ptr::null_mut()) };
        assert!(!context.is_null(), "memory for a compile context");
        // SAFETY: the context is valid, and the guard takes no data.
        unsafe { sys::pcre2_set_compile_recursion_guard_8(context, Some(stack_guard), ptr::null_mut()) };
        // SAFETY: pointer and length describe `pattern`; the out pointers live until the call returns.
        let compiled = unsafe {
            sys::pcre2_compile_8(pattern.as_ptr(), pattern.len(), flags, &mut code, &mut offset, context)
        };
        // SAFETY: created above, and not used afterwards.
        unsafe { sys::pcre2_compile_context_free_8(context) };
        match NonNull::new(compiled) {
            Some(code) => Ok(Pattern { code, unicode: options.unicode }),
            None => Err(format!("{} at offset {offset}", message_of(code))),
        }
    }

    /// Returns the first match at or after byte offset `from`. Returns an error message if the search ended
    /// early. `text` should be UTF-8 if the pattern has the option `unicode`.
    pub fn find(&self, text: &[u8], from: usize) -> Result<Option<Groups>, String> {
        assert!(from <= text.len());
        let mut search = Search::new(self);
        search.run(text, from)
    }

    fn flags(&self, text: &[u8]) -> Result<u32, String> {
        if !self.unicode {
            return Ok(0);
        }
        match std::str::from_utf8(text) {
            Ok(_) => Ok(sys::PCRE2_NO_UTF_CHECK),
            // PCRE2 reports the error.
            Err(_) => Ok(0),
        }
    }
}

impl Drop for Pattern {
    fn drop(&mut self) {
        // SAFETY: `compile` created the pattern, and no search borrows it any more.
        unsafe { sys::pcre2_code_free_8(self.code.as_ptr()) };
    }
}

/// Match data and limits of a search.
struct Search<'p> {
    pattern: &'p Pattern,
    data: NonNull<sys::pcre2_match_data_8>,
    context: NonNull<sys::pcre2_match_context_8>,
}

impl<'p> Search<'p> {
    fn new(pattern: &'p Pattern) -> Search<'p> {
        // SAFETY: the pattern is valid; `drop` frees data and context.
        let (data, context) = unsafe {
            let data = sys::pcre2_match_data_create_from_pattern_8(pattern.code.as_ptr(), ptr::null_mut());
            (data, sys::pcre2_match_context_create_8(ptr::null_mut()))
        };
        let data = NonNull::new(data).expect("memory for match data");
        let context = NonNull::new(context).expect("memory for a match context");
        // SAFETY: the context is valid.
        unsafe {
            sys::pcre2_set_match_limit_8(context.as_ptr(), MATCH_LIMIT);
            sys::pcre2_set_heap_limit_8(context.as_ptr(), HEAP_LIMIT_KIB);
        }
        Search { pattern, data, context }
    }

    fn run(&mut self, text: &[u8], from: usize) -> Result<Option<Groups>, String> {
        let flags = self.pattern.flags(text)?;
        // SAFETY: pointer and length describe `text`, `from` is within it, and the other pointers are valid
        // while `self` lives. If the UTF-8 check is off, the text is known to be UTF-8, and `from` is the end
        // of a match.
        let code = unsafe {
            sys::pcre2_match_8(
                self.pattern.code.as_ptr(),
                text.as_ptr(),
                text.len(),
                from,
                flags,
                self.data.as_ptr(),
                self.context.as_ptr(),
            )
        };
        if code == sys::PCRE2_ERROR_NOMATCH {
            return Ok(None);
        }
        if code < 0 {
            return Err(message_of(code));
        }
        // SAFETY: the match filled a vector of `count` pairs, which lives as long as the match data.
        let pairs = unsafe {
            let count = sys::pcre2_get_ovector_count_8(self.data.as_ptr()) as usize;
            std::slice::from_raw_parts(sys::pcre2_get_ovector_pointer_8(self.data.as_ptr()), count * 2)
        };
        let range = |pair: &[usize]| (pair[0] != sys::PCRE2_UNSET).then(|| pair[0]..pair[1].max(pair[0]));
        Ok(Some(Groups { ranges: pairs.chunks_exact(2).map(range).collect() }))
    }
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        // SAFETY: created by `new`, and not used afterwards.
        unsafe {
            sys::pcre2_match_data_free_8(self.data.as_ptr());
            sys::pcre2_match_context_free_8(self.context.as_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Result<Pattern, String> {
        Pattern::compile(text.as_bytes(), PatternOptions { ignore_case: false, unicode: true })
    }

    #[test]
    fn a_search_that_backtracks_without_end_has_a_limit() {
        let slow = pattern("^(a+)+$").expect("compiles");
        let text = "a".repeat(60) + "!";
        assert_eq!(slow.find(text.as_bytes(), 0).err().as_deref(), Some("match limit exceeded"));
    }

    #[test]
    fn nesting_ends_where_the_stack_does() {
        let deep = "(".repeat(10_000) + &")".repeat(10_000);
        assert!(pattern(&deep).is_err());
    }

    #[test]
    fn text_that_is_no_utf8_is_refused() {
        let any = pattern(".").expect("compiles");
        assert!(any.find(b"\xff\xfe", 0).is_err());
    }

    #[test]
    fn groups_that_took_no_part_are_none() {
        let either = pattern("(a)|(b)").expect("compiles");
        let groups = either.find(b"xb", 0).expect("searches").expect("matches");
        assert_eq!((groups.whole(), groups.get(1), groups.get(2)), (1..2, None, Some(1..2)));
    }
}
