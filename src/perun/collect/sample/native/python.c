/* Where CPython keeps what runs: threads, frames, code (`Include/internal` of its releases).
 *
 * From 3.13 on an interpreter tells that itself (`_Py_DebugOffsets`), before by the tables below. All that is read is checked:
 * the program goes on, and may have thrown away what is read. A piece of memory is read once for each stack.
 */
#define _GNU_SOURCE
#include "python.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "output.h"

enum { PIECE = 512, PIECES = 512, BUCKETS = 1 << 10, CODES = 1 << 12, THREADS = 64, MAX_PYTHON = 1024 };
enum { MAX_TEXT = 2048, MAX_LINES = 1 << 20, MAX_THREADS = 4096, OLDEST = 9, NEWEST = 14, NONE = UINT16_MAX, LARGE = 1 << 20, ALIGNED = 4096, NOTHING = 1 };

struct layout {
    uint32_t interpreters, next, threads;               /* of the runtime, and of an interpreter */
    uint32_t thread_next, thread_id, native_id, current; /* of a thread */
    uint32_t inner;                                      /* of the frame in what `current` points to, or NONE */
    uint32_t previous, code, instruction, owner;         /* of a frame */
    uint32_t filename, name, lines, first, bytecode;     /* of code */
    uint32_t type, size, bytes, state, length, ascii, text;
};

static const struct layout layouts[] = {
    {32, 0, 8, 8, 176, NONE, 24, NONE, 24, 32, 104, NONE, 104, 112, 120, 40, 48, 8, 16, 32, 32, 16, 48, 72},
    {32, 0, 8, 8, 176, NONE, 24, NONE, 24, 32, 96, NONE, 104, 112, 120, 40, 48, 8, 16, 32, 32, 16, 48, 72},
    {40, 0, 16, 8, 152, 160, 56, 8, 48, 32, 56, 68, 112, 128, 136, 72, 184, 8, 16, 32, 32, 16, 48, 72},
    {40, 0, 72, 8, 136, 144, 56, 0, 8, 0, 56, 70, 112, 128, 136, 68, 192, 8, 16, 32, 32, 16, 40, 56},
};
enum { MAIN_THREAD = 72 }; /* of the runtime of 3.9 and 3.10 */

struct python_code {
    uint64_t address, signature[4], start, size; /* of the bytecode */
    uint32_t function, first, line_count;
    uint32_t *lines; /* of each unit of bytecode, from when they are asked for */
    uint8_t *table;
    uint32_t table_size;
    int minor;
    char *name, *file;
    struct python_code *next, *older; /* in the bucket; and of the process */
};

/* What a file with an interpreter tells by its symbols, in its own numbers. */
struct file {
    uint64_t device, number, size, runtime, version, code_type, evaluation[4];
    uint64_t has_new, has_frame; /* functions that came with 3.10 and 3.9 */
    struct segment {
        uint64_t offset, address, size;
    } segments[8];
    size_t segment_count;
    struct file *next;
};

struct process {
    pthread_mutex_t lock;
    uint32_t pid, seen, look; /* how often it was asked for, and when to look for an interpreter again */
    int minor, is_free;       /* 3.minor, 0 without an interpreter; without a global lock */
    uint64_t runtime, code_type, evaluation[4];
    struct layout layout;
    struct thread {
        uint32_t tid;
        uint64_t address, id;
    } threads[THREADS];
    struct python_code *codes[CODES], *newest;
    uint64_t forgotten; /* when */
    struct process *next;
};

/* Interpreters whose functions are not read, each once. */
static struct refusal {
    enum record_refusal why;
    char path[PATH_MAX];
} refusals[8];
static size_t refusal_count, refusals_told;
static struct process *processes[BUCKETS], *forgotten;
static struct file *files;
static int is_found;
static pthread_mutex_t table = PTHREAD_MUTEX_INITIALIZER;

/* Memory. */

struct memory {
    pid_t pid;
    size_t count; /* of the slots that hold a piece, which are in `slots`; NOTHING where reading failed */
    uint64_t pieces[PIECES];
    uint16_t slots[PIECES];
    uint8_t is_used[PIECES], data[PIECES][PIECE];
};

/* Begin anew, with the pieces that the last stack of the process had: one call for all is cheaper. */
static void start_memory(struct memory *memory, pid_t pid) {
    struct iovec here[PIECES], there[PIECES];
    size_t count = 0;
    for (size_t i = 0; i < memory->count; i++) {
        uint16_t slot = memory->slots[i];
        if (memory->pieces[slot] != NOTHING && memory->is_used[slot] && memory->pid == pid) {
            here[count] = (struct iovec){memory->data[slot], PIECE};
            there[count] = (struct iovec){(void *)memory->pieces[slot], PIECE};
            memory->slots[count++] = slot;
        } else
            memory->pieces[slot] = 0;
        memory->is_used[slot] = 0;
    }
    memory->pid = pid;
    ssize_t got = count ? process_vm_readv(pid, here, count, there, count, 0) : 0;
    memory->count = got > 0 ? (size_t)got / PIECE : 0;
    for (size_t i = memory->count; i < count; i++)
        memory->pieces[memory->slots[i]] = 0;
}

static int get(struct memory *memory, uint64_t address, void *into, size_t size) {
    while (size) {
        uint64_t piece = address / PIECE * PIECE, slot = address / PIECE % PIECES;
        size_t at = address % PIECE, part = PIECE - at < size ? PIECE - at : size;
        struct iovec here = {memory->data[slot], PIECE}, there = {(void *)piece, PIECE};
        if (memory->pieces[slot] != piece) {
            if (!memory->pieces[slot])
                memory->slots[memory->count++] = (uint16_t)slot;
            memory->pieces[slot] = NOTHING;
            if (!piece || process_vm_readv(memory->pid, &here, 1, &there, 1, 0) != PIECE)
                return 0;
            memory->pieces[slot] = piece;
        }
        memory->is_used[slot] = 1;
        memcpy(into, memory->data[slot] + at, part);
        into = (uint8_t *)into + part;
        address += part;
        size -= part;
    }
    return 1;
}

static uint64_t word_at(struct memory *memory, uint64_t address) {
    uint64_t word = 0;
    return get(memory, address, &word, sizeof(word)) ? word : 0;
}

/* Whether words are now what they were. */
static int are_still(const struct memory *memory, const uint64_t *addresses, const uint64_t *before, size_t count) {
    uint64_t now[4];
    struct iovec here = {now, count * 8}, there[4];
    for (size_t i = 0; i < count; i++)
        there[i] = (struct iovec){(void *)addresses[i], 8};
    return process_vm_readv(memory->pid, &here, 1, there, count, 0) == (ssize_t)count * 8 && !memcmp(now, before, count * 8);
}

/* Interpreters. */

static void take_symbols(struct file *file, const uint8_t *data, size_t size, const Elf64_Shdr *symbols, const Elf64_Shdr *names) {
    const struct {
        const char *name;
        uint64_t *value, *end;
    } wanted[] = {{"_PyRuntime", &file->runtime, NULL},
                  {"Py_Version", &file->version, NULL},
                  {"PyCode_Type", &file->code_type, NULL},
                  {"_PyEval_EvalFrameDefault", &file->evaluation[0], &file->evaluation[1]},
                  {"_PyEval_EvalFrameDefault.cold", &file->evaluation[2], &file->evaluation[3]},
                  {"Py_NewRef", &file->has_new, NULL},
                  {"PyThreadState_GetFrame", &file->has_frame, NULL}};
    if (symbols->sh_offset > size || symbols->sh_size > size - symbols->sh_offset || names->sh_offset > size ||
        names->sh_size > size - names->sh_offset || !names->sh_size || data[names->sh_offset + names->sh_size - 1])
        return;
    const char *text = (const char *)data + names->sh_offset;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, data + symbols->sh_offset + at, sizeof(symbol));
        if (!symbol.st_shndx || symbol.st_name >= names->sh_size || !strchr("_P", text[symbol.st_name]))
            continue;
        for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
            if (!strcmp(text + symbol.st_name, wanted[i].name)) {
                *wanted[i].value = symbol.st_value;
                if (wanted[i].end)
                    *wanted[i].end = symbol.st_value + symbol.st_size;
            }
    }
}

static void read_symbols(struct file *file, const uint8_t *data, size_t size) {
    Elf64_Ehdr head;
    Elf64_Phdr segment;
    Elf64_Shdr section, names;
    memcpy(&head, data, sizeof(head));
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(segment) ||
        head.e_shentsize != sizeof(section) || head.e_phoff > size || head.e_phnum * sizeof(segment) > size - head.e_phoff ||
        head.e_shoff > size || head.e_shnum * sizeof(section) > size - head.e_shoff)
        return;
    for (size_t i = 0; i < head.e_phnum && file->segment_count < 8; i++) {
        memcpy(&segment, data + head.e_phoff + i * sizeof(segment), sizeof(segment));
        if (segment.p_type == PT_LOAD)
            file->segments[file->segment_count++] = (struct segment){segment.p_offset, segment.p_vaddr, segment.p_filesz};
    }
    for (size_t i = 0; i < head.e_shnum; i++) {
        memcpy(&section, data + head.e_shoff + i * sizeof(section), sizeof(section));
        if ((section.sh_type != SHT_DYNSYM && section.sh_type != SHT_SYMTAB) || section.sh_link >= head.e_shnum)
            continue;
        memcpy(&names, data + head.e_shoff + section.sh_link * sizeof(section), sizeof(names));
        take_symbols(file, data, size, &section, &names);
    }
}

static const struct file *file_of(const char *path) {
    struct stat about;
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct file *file = NULL;
    if (opened >= 0 && !fstat(opened, &about) && S_ISREG(about.st_mode) && about.st_size > (off_t)sizeof(Elf64_Ehdr)) {
        for (file = files; file && (file->device != about.st_dev || file->number != about.st_ino); file = file->next)
            ;
        const uint8_t *data = file ? NULL : mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, opened, 0);
        if (!file && data != MAP_FAILED && (file = calloc(1, sizeof(*file)))) {
            file->device = about.st_dev;
            file->number = about.st_ino;
            file->size = (uint64_t)about.st_size;
            read_symbols(file, data, (size_t)about.st_size);
            file->next = files;
            files = file;
        }
        if (data && data != MAP_FAILED)
            munmap((void *)data, (size_t)about.st_size);
    }
    if (opened >= 0)
        close(opened);
    return file;
}

static int refuse(const char *path, enum record_refusal why) {
    for (size_t i = 0; i < refusal_count; i++)
        if (!strcmp(refusals[i].path, path))
            return 0;
    if (refusal_count < sizeof(refusals) / sizeof(*refusals)) {
        refusals[refusal_count].why = why;
        snprintf(refusals[refusal_count++].path, PATH_MAX, "%s", path);
    }
    return 0;
}

/* From 3.13 on the runtime begins with the offsets, as words. */
static int told_layout(struct process *process, const uint64_t *words) {
    uint32_t is_newer = process->minor > 13, thread = is_newer ? 22 : 19, frame = thread + 9;
    uint32_t code = frame + (is_newer ? 8 : 6), object = code + (is_newer ? 11 : 10), text = object + (is_newer ? 27 : 23);
    if (memcmp(words, "xdebugpy", 8))
        return 0;
    process->is_free = words[2] != 0;
    process->layout = (struct layout){
        (uint32_t)words[5],          (uint32_t)words[8],          (uint32_t)words[9],          (uint32_t)words[thread + 2],
        (uint32_t)words[thread + 5], (uint32_t)words[thread + 6], (uint32_t)words[thread + 4], NONE,
        (uint32_t)words[frame + 1],  (uint32_t)words[frame + 2],  (uint32_t)words[frame + 3],  (uint32_t)words[frame + 5],
        (uint32_t)words[code + 1],   (uint32_t)words[code + 3],   (uint32_t)words[code + 4],   (uint32_t)words[code + 5],
        (uint32_t)words[code + 9],   (uint32_t)words[object + 1], (uint32_t)words[object],     (uint32_t)words[text - 1],
        (uint32_t)words[text + 1],   (uint32_t)words[text + 2],   (uint32_t)words[text + 3],   (uint32_t)words[text + 3] + 16};
    return 1;
}

/* Whether a file has a name that begins so; with "" that of an interpreter or its library. */
static int is_named(const char *path, const char *begin) {
    const char *name = strrchr(path, '/') + 1;
    return *begin ? !strncmp(name, begin, strlen(begin)) : is_named(path, "python") || is_named(path, "libpython");
}

/* Take the interpreter in a mapping of a file; false where there is none that can be read. */
static int take_interpreter(struct process *process, struct memory *memory, const char *path, uint64_t start, uint64_t offset) {
    const struct file *file = file_of(path);
    uint64_t words[128], version = 0, bias = 0;
    if (!file || !file->runtime || !file->evaluation[0] || !file->code_type)
        return file && file->size > LARGE && is_named(path, "") ? refuse(path, REFUSED_SYMBOLS) : 0;
    for (size_t i = 0; i < file->segment_count; i++)
        if (offset + ALIGNED > file->segments[i].offset && offset < file->segments[i].offset + file->segments[i].size)
            bias = start - offset - (file->segments[i].address - file->segments[i].offset);
    if (!get(memory, file->version ? file->version + bias : file->runtime + bias, &version, sizeof(version)))
        return errno == EPERM ? refuse(path, REFUSED_RIGHTS) : 0;
    process->minor = file->version ? (int)(version >> 16 & 0xff) : file->has_new ? 10 : file->has_frame ? 9 : 0;
    process->runtime = file->runtime + bias;
    process->code_type = file->code_type + bias;
    for (size_t i = 0; i < 4; i++)
        process->evaluation[i] = file->evaluation[i] ? file->evaluation[i] + bias : 0;
    if (process->minor >= OLDEST && process->minor < OLDEST + 4)
        process->layout = layouts[process->minor - OLDEST];
    else if (process->minor < OLDEST || process->minor > NEWEST || !get(memory, process->runtime, words, sizeof(words)) ||
             !told_layout(process, words))
        return process->minor = refuse(path, REFUSED_VERSION);
    __atomic_store_n(&is_found, 1, __ATOMIC_RELAXED);
    return 1;
}

/* The program itself, or a library of the name. */
static void find_interpreter(struct process *process, struct memory *memory) {
    char line[PATH_MAX + 128], path[PATH_MAX], rights[8];
    unsigned long long start, offset;
    int is_first = 1;
    snprintf(line, sizeof(line), "/proc/%u/maps", process->pid);
    FILE *maps = fopen(line, "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%llx-%*x %7s %llx %*s %*s %4095[^\n]", &start, rights, &offset, path) != 4 || rights[2] != 'x' ||
            path[0] != '/')
            continue;
        if (is_named(path, "pypy") || is_named(path, "libpypy"))
            refuse(path, REFUSED_OTHER);
        if ((is_first || is_named(path, "")) && take_interpreter(process, memory, path, start, offset))
            break;
        is_first = 0;
    }
    if (maps)
        fclose(maps);
}

/* Code. */

static char *read_text(const struct process *process, struct memory *memory, uint64_t address) {
    const struct layout *layout = &process->layout;
    uint32_t state = 0, kind, letter;
    uint64_t length = word_at(memory, address + layout->length);
    uint8_t data[MAX_TEXT * 4];
    get(memory, address + layout->state, &state, sizeof(state));
    state >>= process->is_free ? 8 : 2;
    kind = state & 7;
    length = length < MAX_TEXT ? length : MAX_TEXT;
    if (!(state & 8) || (kind != 1 && kind != 2 && kind != 4) ||
        !get(memory, address + (state & 16 ? layout->ascii : layout->text), data, length * kind))
        return NULL;
    char *text = malloc(length * 4 + 1), *to = text;
    for (uint64_t i = 0; text && i < length; i++) {
        letter = 0;
        memcpy(&letter, data + i * kind, kind);
        if (letter < 0x80)
            *to++ = (char)(letter ? letter : '?');
        else {
            unsigned more = letter < 0x800 ? 1 : letter < 0x10000 ? 2 : 3;
            *to++ = (char)(0xf00u >> more | letter >> 6 * more);
            while (more--)
                *to++ = (char)(0x80 | (letter >> 6 * more & 0x3f));
        }
    }
    if (text)
        *to = 0;
    return text;
}

static struct python_code *code_of(struct process *process, struct memory *memory, uint64_t address) {
    const struct layout *layout = &process->layout;
    struct python_code **bucket = &process->codes[address / 16 % CODES], *code;
    uint64_t signature[4] = {word_at(memory, address + layout->filename), word_at(memory, address + layout->name),
                             word_at(memory, address + layout->lines), 0};
    uint64_t table_size, units = word_at(memory, address + layout->size);
    get(memory, address + layout->first, &signature[3], 4);
    if (word_at(memory, address + layout->type) != process->code_type)
        return NULL;
    for (code = *bucket; code; code = code->next)
        if (code->address == address && !memcmp(code->signature, signature, sizeof(signature)))
            return code;
    if (!(code = calloc(1, sizeof(*code))))
        return NULL;
    code->address = address;
    memcpy(code->signature, signature, sizeof(signature));
    code->minor = process->minor;
    code->first = (uint32_t)signature[3];
    code->start = address + layout->bytecode;
    code->size = units * 2;
    if (process->minor < 11) {
        uint64_t bytecode = word_at(memory, code->start);
        code->start = bytecode + layout->bytes;
        code->size = word_at(memory, bytecode + layout->size);
    }
    code->name = read_text(process, memory, signature[1]);
    code->file = read_text(process, memory, signature[0]);
    table_size = word_at(memory, signature[2] + layout->size);
    code->table_size = table_size < MAX_LINES ? (uint32_t)table_size : 0;
    code->table = malloc(code->table_size + 1);
    if (!code->name || !code->file || !code->table || code->size > MAX_LINES * 2 ||
        !get(memory, signature[2] + layout->bytes, code->table, code->table_size)) {
        free(code->name), free(code->file), free(code->table), free(code);
        return NULL;
    }
    code->older = process->newest;
    process->newest = code;
    code->next = *bucket;
    return *bucket = code;
}

/* Lines (`Objects/lnotab_notes.txt`, from 3.11 on `Objects/locations.md`). */

static uint32_t take_number(const struct python_code *code, uint32_t *at) {
    uint32_t value = 0, shift = 0;
    while (*at < code->table_size) {
        uint8_t byte = code->table[(*at)++];
        value |= (uint32_t)(byte & 63) << (shift & 31);
        shift += 6;
        if (!(byte & 64))
            break;
    }
    return value;
}

static void set_lines(struct python_code *code, uint32_t from, uint32_t count, uint32_t line) {
    for (uint32_t unit = from; unit < from + count && unit < code->line_count; unit++)
        code->lines[unit] = line;
}

static void read_lines(struct python_code *code) {
    uint32_t line = code->first, unit = 0, at = 0;
    code->line_count = (uint32_t)(code->size / 2);
    if (!(code->lines = calloc(code->line_count + 1, sizeof(*code->lines))))
        code->line_count = 0;
    while (code->minor >= 11 && at < code->table_size) {
        uint8_t head = code->table[at++], kind = head >> 3 & 15, count = (uint8_t)((head & 7) + 1);
        uint32_t number = kind == 13 || kind == 14 ? take_number(code, &at) : 0;
        line += kind >= 10 && kind <= 12 ? kind - 10u : number & 1 ? -(number >> 1) : number >> 1;
        set_lines(code, unit, count, kind == 15 ? 0 : line);
        unit += count;
        while (at < code->table_size && !(code->table[at] & 0x80))
            at++;
    }
    for (; code->minor < 11 && at + 1 < code->table_size; at += 2) {
        uint32_t count = code->table[at] / 2, bytes = code->table[at];
        int32_t more = (int8_t)code->table[at + 1];
        if (code->minor == 10) {
            line += more == -128 ? 0 : (uint32_t)more;
            set_lines(code, unit / 2, count, more == -128 ? 0 : line);
        } else {
            set_lines(code, unit / 2, count, line);
            line += (uint32_t)more;
        }
        unit += bytes;
    }
    if (code->minor == 9)
        set_lines(code, unit / 2, code->line_count, line);
    free(code->table);
    code->table = NULL;
}

uint64_t python_place(const struct python_frame *frame) {
    struct python_code *code = frame->code;
    if (!code->function) {
        code->function = output_function(code->name, code->file);
        read_lines(code);
    }
    uint32_t line = frame->unit >= 0 && (uint32_t)frame->unit < code->line_count ? code->lines[frame->unit] : 0;
    return (uint64_t)MODULE_PYTHON << MODULE_SHIFT | (uint64_t)code->function << LINE_BITS | (line & ((1u << LINE_BITS) - 1));
}

int python_executes(const struct python_frame *frame, uint64_t address) {
    return address - frame->code->start <= frame->code->size;
}

/* Threads and frames. */

static int is_thread(const struct process *process, struct memory *memory, const struct thread *thread) {
    const struct layout *layout = &process->layout;
    uint32_t id = layout->native_id == NONE ? layout->thread_id : layout->native_id;
    return thread->address && word_at(memory, thread->address + id) == thread->id;
}

/* The state of a thread; 0 where it has none. Before 3.11 it is told by the place of its stack alone, above which lies what the
 * C library keeps of the thread. */
static uint64_t thread_of(struct process *process, struct memory *memory, uint32_t tid, uint64_t stack) {
    const struct layout *layout = &process->layout;
    struct thread *known = &process->threads[tid % THREADS];
    uint64_t only = 0, nearest = 0, id, wanted = tid;
    unsigned count = 0, is_old = layout->native_id == NONE;
    if (known->tid == tid && is_thread(process, memory, known))
        return known->address;
    *known = (struct thread){tid, 0, UINT64_MAX};
    if (is_old)
        wanted = tid == process->pid ? word_at(memory, process->runtime + MAIN_THREAD) : 0;
    uint64_t interpreter = word_at(memory, process->runtime + layout->interpreters);
    for (; interpreter && count < MAX_THREADS; interpreter = word_at(memory, interpreter + layout->next))
        for (uint64_t thread = word_at(memory, interpreter + layout->threads); thread && count++ < MAX_THREADS;
             thread = word_at(memory, thread + layout->thread_next)) {
            only = thread;
            id = word_at(memory, thread + (is_old ? layout->thread_id : layout->native_id));
            if (wanted && id == wanted)
                return *known = (struct thread){tid, thread, id}, thread;
            if (is_old && !wanted && stack && id > stack && id < known->id) {
                *known = (struct thread){tid, thread, id};
                nearest = thread;
            }
        }
    /* The only thread of a process that was forked may have the number that it had before. */
    return nearest ? nearest : count == 1 && tid == process->pid ? only : 0;
}

static enum python_status read_frames(struct process *process, struct memory *memory, uint32_t tid, uint64_t stack,
                                      struct python_stack *found) {
    const struct layout *layout = &process->layout;
    uint64_t thread = thread_of(process, memory, tid, stack), places[3] = {thread + layout->current}, words[3];
    uint64_t frame = words[0] = thread ? word_at(memory, places[0]) : 0;
    size_t count = 1;
    if (frame && layout->inner != NONE) {
        places[count] = frame + layout->inner;
        frame = words[count] = word_at(memory, places[count]);
        count++;
    }
    if (!frame)
        return PYTHON_BARE;
    places[count] = frame + layout->instruction;
    words[count] = word_at(memory, places[count]);
    for (unsigned steps = 0; frame && found->count < MAX_PYTHON; frame = word_at(memory, frame + layout->previous)) {
        struct python_frame *one = &found->frames[found->count];
        uint64_t place = word_at(memory, frame + layout->instruction);
        uint8_t owner = 0;
        if (layout->owner != NONE && !get(memory, frame + layout->owner, &owner, 1))
            return PYTHON_CHANGED;
        if (process->minor > 11 && owner > 2) { /* a mark where native code begins to evaluate */
            if (found->count)
                one[-1].is_last = 1;
            if (++steps > 2 * MAX_PYTHON)
                return PYTHON_CHANGED;
            continue;
        }
        *one = (struct python_frame){frame, code_of(process, memory, word_at(memory, frame + layout->code) & ~(uint64_t)7), -1,
                                     process->minor < 11 || (process->minor == 11 && owner)};
        if (!one->code)
            return PYTHON_CHANGED;
        if (process->minor < 11)
            one->unit = (int32_t)place < 0 ? 0 : (int32_t)place / (process->minor == 9 ? 2 : 1);
        else if (place + 2 - one->code->start <= one->code->size)
            one->unit = place < one->code->start ? 0 : (int32_t)((place - one->code->start) / 2);
        else if (!process->is_free)
            return PYTHON_CHANGED;
        found->count++;
    }
    if (frame || !are_still(memory, places, words, count + 1))
        return PYTHON_CHANGED;
    if (found->count)
        found->frames[found->count - 1].is_last = 1;
    return found->count ? PYTHON_READ : PYTHON_BARE;
}

static struct process *process_of(uint32_t pid) {
    struct process *process = processes[pid % BUCKETS];
    while (process && process->pid != pid)
        process = process->next;
    if (!process && (process = calloc(1, sizeof(*process)))) {
        pthread_mutex_init(&process->lock, NULL);
        process->pid = pid;
        process->next = processes[pid % BUCKETS];
        processes[pid % BUCKETS] = process;
    }
    return process;
}

struct python_stack *python_read(uint32_t pid, uint32_t tid, uint64_t stack) {
    static __thread struct memory memory;
    static __thread struct python_stack *found;
    struct python_stack *copy;
    if (!found && !(found = malloc(sizeof(*found) + MAX_PYTHON * sizeof(*found->frames))))
        return NULL;
    start_memory(&memory, (pid_t)pid);
    found->tid = tid;
    found->count = 0;
    found->status = PYTHON_NONE;
    pthread_mutex_lock(&table);
    struct process *process = process_of(pid);
    if (process && !process->minor && process->seen++ == process->look) {
        process->look = process->look < 1024 ? process->look * 2 + 1 : process->look + 1024;
        find_interpreter(process, &memory);
    }
    if (process)
        pthread_mutex_lock(&process->lock);
    pthread_mutex_unlock(&table);
    if (process && process->minor) {
        found->status = read_frames(process, &memory, tid, stack, found);
        memcpy(found->evaluation, process->evaluation, sizeof(found->evaluation));
    }
    if (process)
        pthread_mutex_unlock(&process->lock);
    if (found->status != PYTHON_READ)
        found->count = 0;
    size_t size = sizeof(*found) + found->count * sizeof(*found->frames);
    return (copy = malloc(size)) ? memcpy(copy, found, size) : NULL;
}

int python_knows(uint32_t pid) {
    pthread_mutex_lock(&table);
    const struct process *process = processes[pid % BUCKETS];
    while (process && process->pid != pid)
        process = process->next;
    int found = process && process->minor;
    pthread_mutex_unlock(&table);
    return found;
}

int python_is_found(void) {
    return __atomic_load_n(&is_found, __ATOMIC_RELAXED);
}

void python_tell(void) {
    pthread_mutex_lock(&table);
    for (; refusals_told < refusal_count; refusals_told++)
        output_refusal(refusals[refusals_told].why, refusals[refusals_told].path);
    pthread_mutex_unlock(&table);
}

void python_forget(uint32_t pid, uint64_t time) {
    pthread_mutex_lock(&table);
    struct process **place = &processes[pid % BUCKETS], *process;
    while (*place && (*place)->pid != pid)
        place = &(*place)->next;
    if ((process = *place)) {
        *place = process->next;
        pthread_mutex_lock(&process->lock); /* who reads it has it locked */
        pthread_mutex_unlock(&process->lock);
        process->forgotten = time;
        process->next = forgotten;
        forgotten = process;
    }
    pthread_mutex_unlock(&table);
}

void python_free(uint64_t until) {
    pthread_mutex_lock(&table);
    for (struct process **place = &forgotten, *process; (process = *place);) {
        if (process->forgotten >= until) {
            place = &process->next;
            continue;
        }
        *place = process->next;
        for (struct python_code *code = process->newest, *older; code; code = older) {
            older = code->older;
            free(code->name), free(code->file), free(code->table), free(code->lines), free(code);
        }
        free(process);
    }
    pthread_mutex_unlock(&table);
}
