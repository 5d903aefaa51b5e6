-- Run by uftrace at the entry of functions: reads the size of the structure that each works on, and writes
-- it to a mapped file. uftrace_sizes.py fills in the words in capitals and reads the file.
local ffi = require("ffi")
local C = ffi.C
ffi.cdef[[
int open(const char *, int, ...);
int close(int);
int ftruncate(int, int64_t);
void *mmap(void *, size_t, int, int, int, int64_t);
int munmap(void *, size_t);
int getpid(void);
struct perun_iovec { void *base; size_t length; };
long process_vm_readv(int, const struct perun_iovec *, unsigned long, const struct perun_iovec *,
                      unsigned long, unsigned long);
typedef struct { uint64_t time; uint64_t thread; int64_t sum; uint64_t after; } perun_record;
struct perun_time { int64_t seconds, nanoseconds; };
int clock_gettime(int, struct perun_time *);
]]
UFTRACE_FUNCS = { @NAMES@ }
local sizes = {
@SIZES@
}
local room = 262144 -- records of one file, of 32 bytes each
local pid, file, records, used = 0, 0, nil, room
local seen = {} -- threads whose process is known
local buffer = ffi.new("uint64_t[1]")
local into, from = ffi.new("struct perun_iovec[1]"), ffi.new("struct perun_iovec[1]")
into[0].base = buffer
local now = ffi.new("struct perun_time[1]")
local not_read = ffi.new("int64_t", -0x7fffffffffffffffLL - 1)

-- Begin the next file; a forked process has files of its own, as its mappings are shared with its parent.
local function next_file()
  if records ~= nil then C.munmap(records, room * 32) end
  records = nil
  local descriptor = C.open(string.format("%s.%d.%d", @FILE@, pid, file), 0x80042, ffi.cast("int", 384))
  file = file + 1
  used = 0
  if descriptor < 0 then return end
  if C.ftruncate(descriptor, room * 32) == 0 then
    local place = C.mmap(nil, room * 32, 3, 1, descriptor, 0)
    if ffi.cast("intptr_t", place) ~= -1 then records = ffi.cast("perun_record *", place) end
  end
  C.close(descriptor)
end

-- Memory is read by a system call, which fails for a stray pointer instead of ending the program.
local function sum(terms, start)
  local total = ffi.new("int64_t", 0)
  for _, term in ipairs(terms) do
    local offsets = term[2]
    local address = ffi.cast("uint64_t", start)
    local last = #offsets
    for step = 1, last do
      buffer[0] = 0
      from[0].base = ffi.cast("void *", address + offsets[step])
      local width = step < last and 8 or term[3]
      from[0].length = width
      into[0].length = width
      if C.process_vm_readv(pid, into, 1, from, 1, 0) ~= width then return not_read end
      address = buffer[0]
    end
    total = total + term[1] * ffi.cast("int64_t", ffi.cast(term[4], buffer)[0])
  end
  return total
end

function uftrace_begin(ctx) end
function uftrace_end() end
function uftrace_entry(ctx)
  local terms = sizes[ctx.name]
  if terms == nil or ctx.args == nil then return end
  if not seen[ctx.tid] then
    seen[ctx.tid] = true
    local current = C.getpid()
    if current ~= pid then
      if records ~= nil then C.munmap(records, room * 32) end
      pid, file, records, used = current, 0, nil, room
    end
  end
  if used == room then next_file() end
  if records == nil then return end
  local record = records[used]
  record.thread = ctx.tid
  record.sum = sum(terms, ctx.args[1])
  record.time = ctx.timestamp
  used = used + 1
  -- The call counts from here, so that its time does not include the reading.
  C.clock_gettime(1, now)
  record.after = now[0].seconds * 1000000000 + now[0].nanoseconds
end
