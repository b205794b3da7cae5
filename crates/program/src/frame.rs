//! [`Frame`]: the values, cursors and handlers of one activation of a program.

use std::sync::Arc;

use cohort_base::{Budget, Reservation};
use cohort_session::Marked;
use cohort_sql::ast::AfterHandler;
use cohort_types::{Level, SqlResult, Value, Warning};

use crate::bind::Bound;
use crate::host::QueryRows;
use crate::program::{Block, CursorId, HandledBy, Handler, Pc, Program};

/// Values of at least this many bytes are charged to the session.
const CHARGED_BYTES_MIN: usize = 512;

/// One activation.
pub(crate) struct Frame {
    /// The values of the variables, by place.
    pub places: Vec<Value>,
    /// The memory of a large frame and of large values.
    memory: Reservation,
    /// The rows of open cursors.
    pub cursors: Vec<Option<Box<dyn QueryRows>>>,
    /// The entered blocks, outermost first.
    pub blocks: Vec<u32>,
    /// The running handlers, outermost first.
    pub running: Vec<Running>,
}

/// A running handler.
pub(crate) struct Running {
    /// Index in [`Frame::blocks`] of the handler's block.
    block: usize,
    /// Number of entered blocks when the condition was raised. The handlers of these blocks, from the
    /// handler's own one on, do not see conditions that the handler raises.
    entered: usize,
    action: AfterHandler,
    /// The instruction after a CONTINUE handler.
    resume: Pc,
    /// The handled condition, which RESIGNAL raises again.
    pub condition: Warning,
    pub marked: Marked,
}

/// A handler that is about to run.
pub(crate) struct Found {
    block: usize,
    action: AfterHandler,
    pub start: Pc,
}

impl Frame {
    /// Makes a frame. Fails if the session has no memory for it: programs may call themselves.
    pub fn new(bound: &Bound, memory: &Arc<Budget>) -> SqlResult<Frame> {
        let mut memory = Reservation::new(Arc::clone(memory));
        let bytes = bound.places.len() * size_of::<Value>();
        if bytes >= CHARGED_BYTES_MIN {
            memory.grow(bytes as u64)?;
        }
        Ok(Frame {
            places: vec![Value::Null; bound.places.len()],
            memory,
            cursors: bound.program.cursors.iter().map(|_| None).collect(),
            blocks: Vec::new(),
            running: Vec::new(),
        })
    }

    /// Puts a value in a place. Fails if the session has no memory for it.
    pub fn put(&mut self, place: u32, value: Value) -> SqlResult<()> {
        let old = &mut self.places[place as usize];
        let (freed, needed) = (charged_bytes(old), charged_bytes(&value));
        if needed != freed {
            self.memory.resize((self.memory.used() + needed).saturating_sub(freed))?;
        }
        *old = value;
        Ok(())
    }

    /// Returns the handler for a condition: of the innermost block that has one. Blocks around a running
    /// handler are searched from the block around its own one. A condition of a declaration at `pc` that a
    /// handler of the same block would handle has no handler: as in MariaDB, that one is declared later, and
    /// hides those of the blocks around.
    pub fn handler(&self, program: &Program, pc: Pc, condition: &Warning) -> Option<Found> {
        let is_declaring = |block: &Block| block.declared.contains(&pc);
        if program.blocks.iter().any(|block| is_declaring(block) && block.best_handler(condition).is_some()) {
            return None;
        }
        let mut visible = self.blocks.len();
        let mut running = self.running.iter().rev().peekable();
        loop {
            let hidden = running.next();
            let lowest = hidden.map_or(0, |running| running.entered);
            for index in (lowest..visible).rev() {
                let block = &program.blocks[self.blocks[index] as usize];
                if let Some(handler) = block.best_handler(condition) {
                    return Some(Found { block: index, action: handler.action, start: handler.start });
                }
            }
            visible = visible.min(hidden?.block);
        }
    }

    /// Begins a handler. `resume` is the instruction after a CONTINUE handler.
    pub fn begin_handler(&mut self, found: Found, resume: Pc, condition: Warning, marked: Marked) -> Pc {
        self.running.push(Running {
            block: found.block,
            entered: self.blocks.len(),
            action: found.action,
            resume,
            condition,
            marked,
        });
        found.start
    }

    /// Ends the innermost handler. Returns where the program goes on, and the marks of the handlers that have
    /// ended, innermost first: an EXIT handler also ends those that run inside its block.
    pub fn end_handler(&mut self, program: &Program) -> (Pc, Vec<Marked>) {
        let ended = self.running.pop().expect("a handler is running");
        let mut marked = vec![ended.marked];
        match ended.action {
            AfterHandler::Continue => {
                self.leave_to(program, ended.entered);
                (ended.resume, marked)
            }
            AfterHandler::Exit => {
                while self.running.last().is_some_and(|running| running.block >= ended.block) {
                    marked.extend(self.running.pop().map(|running| running.marked));
                }
                let end = program.blocks[self.blocks[ended.block] as usize].end;
                self.leave_to(program, ended.block);
                (end, marked)
            }
        }
    }

    /// Leaves blocks until `count` are left, and closes their cursors.
    pub fn leave_to(&mut self, program: &Program, count: usize) {
        for block in self.blocks.drain(count..) {
            for cursor in &program.blocks[block as usize].cursors {
                self.cursors[*cursor as usize] = None;
            }
        }
    }

    pub fn cursor(&mut self, id: CursorId) -> &mut Option<Box<dyn QueryRows>> {
        &mut self.cursors[id as usize]
    }
}

fn charged_bytes(value: &Value) -> u64 {
    match value.memory_bytes() {
        small if small < CHARGED_BYTES_MIN => 0,
        large => large as u64,
    }
}

impl Block {
    /// Returns the handler that fits a condition best.
    fn best_handler(&self, condition: &Warning) -> Option<&Handler> {
        let best = self.handlers.iter().filter_map(|handler| {
            let precedence = handler.conditions.iter().filter_map(|by| by.precedence(condition));
            precedence.min().map(|precedence| (precedence, handler))
        });
        best.min_by_key(|(precedence, _)| *precedence).map(|(_, handler)| handler)
    }
}

impl HandledBy {
    /// Returns the precedence if this handles the condition: the most specific one is least.
    fn precedence(&self, condition: &Warning) -> Option<u8> {
        let error = &condition.error;
        let class = &error.sqlstate()[..2];
        match self {
            HandledBy::Number(number) => (error.number() == *number).then_some(0),
            HandledBy::Sqlstate(state) => (error.sqlstate() == state).then_some(1),
            HandledBy::Warning => (class == "01" || condition.level == Level::Warning).then_some(2),
            HandledBy::NotFound => (class == "02").then_some(2),
            HandledBy::Exception => {
                let is_exception = !matches!(class, "00" | "01" | "02");
                (is_exception && condition.level == Level::Error).then_some(2)
            }
        }
    }
}
