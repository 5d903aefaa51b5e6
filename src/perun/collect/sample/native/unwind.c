/* Reads `.eh_frame` (Linux Standard Base 5.0, "Exception Frames"; DWARF 5, section 6.4).
 *
 * All that comes from a file is checked against the bytes that were read of it.
 */
#define _GNU_SOURCE
#include "unwind.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_SEGMENTS = 16, MAX_REGION = 1 << 28, MAX_SAVED = 8, MAX_WORDS = 32, CACHED = 1 << 15 };
enum { PC_RELATIVE = 0x10, DATA_RELATIVE = 0x30, SIGNED_4 = 0x0b, OMITTED = 0xff };

struct range {
    uint64_t start, entry; /* of a function, and of its description in the region */
};

struct image {
    int file;
    const uint8_t *memory; /* in place of a file */
    size_t memory_size;
    struct segment {
        uint64_t offset, address, size;
    } segments[MAX_SEGMENTS];
    size_t segment_count;
    uint8_t *region; /* the tables */
    uint64_t region_address, region_size;
    struct range *ranges;
    size_t range_count;
    uint64_t number;
};

struct cursor {
    const uint8_t *at, *end;
    int failed;
};

static uint64_t take(struct cursor *cursor, size_t size) {
    uint64_t value = 0;
    if ((size_t)(cursor->end - cursor->at) < size) {
        cursor->failed = 1;
        cursor->at = cursor->end;
        return 0;
    }
    memcpy(&value, cursor->at, size);
    cursor->at += size;
    return value;
}

static uint64_t take_leb(struct cursor *cursor, int is_signed) {
    uint64_t value = 0, byte;
    unsigned shift = 0;
    do {
        byte = take(cursor, 1);
        if (shift < 64)
            value |= (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80 && !cursor->failed);
    if (is_signed && shift < 64 && byte & 0x40)
        value |= ~(uint64_t)0 << shift;
    return value;
}

static void skip(struct cursor *cursor, uint64_t size) {
    if ((uint64_t)(cursor->end - cursor->at) < size) {
        cursor->failed = 1;
        cursor->at = cursor->end;
    } else
        cursor->at += size;
}

/* A pointer of the form that `encoding` says. */
static uint64_t take_pointer(struct cursor *cursor, unsigned encoding, const struct image *image) {
    uint64_t own = image->region_address + (uint64_t)(cursor->at - image->region), value;
    switch (encoding & 0x0f) {
    case 0x00: case 0x04: case 0x0c: value = take(cursor, 8); break;
    case 0x01: value = take_leb(cursor, 0); break;
    case 0x02: value = take(cursor, 2); break;
    case 0x03: value = take(cursor, 4); break;
    case 0x09: value = take_leb(cursor, 1); break;
    case 0x0a: value = (uint64_t)(int16_t)take(cursor, 2); break;
    case 0x0b: value = (uint64_t)(int32_t)take(cursor, 4); break;
    default: cursor->failed = 1; return 0;
    }
    return (encoding & 0x70) == PC_RELATIVE ? value + own : value;
}

static struct cursor cursor_at(const struct image *image, uint64_t place) {
    struct cursor cursor = {image->region, image->region + image->region_size, place > image->region_size};
    cursor.at += cursor.failed ? image->region_size : place;
    return cursor;
}

/* Opening. */

static int read_part(const struct image *image, uint64_t offset, void *into, size_t size) {
    if (!image->memory)
        return pread(image->file, into, size, (off_t)offset) == (ssize_t)size;
    if (offset > image->memory_size || image->memory_size - offset < size)
        return 0;
    memcpy(into, image->memory + offset, size);
    return 1;
}

static int read_region(struct image *image, uint64_t address, uint64_t offset, uint64_t size) {
    if (!size || size > MAX_REGION)
        return 0;
    image->region = malloc(size);
    image->region_address = address;
    image->region_size = size;
    return image->region && read_part(image, offset, image->region, size);
}

/* An entry of `.eh_frame` at a place in the region: where its content begins and ends; false at the end of all. */
static int entry_at(const struct image *image, uint64_t place, struct cursor *content) {
    struct cursor cursor = cursor_at(image, place);
    uint64_t length = take(&cursor, 4);
    if (cursor.failed || !length || length >= 0xffffffff || length > (uint64_t)(cursor.end - cursor.at))
        return 0;
    cursor.end = cursor.at + length;
    *content = cursor;
    return 1;
}

struct common {
    uint64_t code_factor;
    int64_t data_factor;
    unsigned encoding;
    int has_data, is_signal;
    struct cursor program;
};

static int read_common(const struct image *image, uint64_t place, struct common *common) {
    struct cursor cursor;
    char letters[8] = {0};
    *common = (struct common){0};
    if (!entry_at(image, place, &cursor) || take(&cursor, 4))
        return 0;
    unsigned version = (unsigned)take(&cursor, 1);
    for (size_t i = 0; (letters[i < 7 ? i : 7] = (char)take(&cursor, 1)); i++)
        if (i >= 7 || cursor.failed)
            return 0;
    common->code_factor = take_leb(&cursor, 0);
    common->data_factor = (int64_t)take_leb(&cursor, 1);
    if (version == 1)
        take(&cursor, 1);
    else
        take_leb(&cursor, 0);
    if (letters[0] == 'z') {
        uint64_t size = take_leb(&cursor, 0);
        const uint8_t *after = cursor.at + size;
        if (size > (uint64_t)(cursor.end - cursor.at))
            return 0;
        common->has_data = 1;
        for (const char *letter = letters + 1; *letter && !cursor.failed; letter++) {
            if (*letter == 'R')
                common->encoding = (unsigned)take(&cursor, 1);
            else if (*letter == 'P')
                take_pointer(&cursor, (unsigned)take(&cursor, 1) & 0x0f, image);
            else if (*letter == 'L')
                take(&cursor, 1);
            else if (*letter == 'S')
                common->is_signal = 1;
        }
        cursor.at = after;
    }
    common->program = cursor;
    return !cursor.failed;
}

/* The description at a place: what it shares with others, and for which addresses it is. */
static int read_description(const struct image *image, uint64_t place, struct common *common, struct cursor *program,
                            uint64_t *start, uint64_t *size) {
    struct cursor cursor;
    if (!entry_at(image, place, &cursor))
        return 0;
    uint64_t own = (uint64_t)(cursor.at - image->region), back = take(&cursor, 4);
    if (!back || back > own || !read_common(image, own - back, common))
        return 0;
    *start = take_pointer(&cursor, common->encoding, image);
    *size = take_pointer(&cursor, common->encoding & 0x0f, image);
    if (common->has_data)
        skip(&cursor, take_leb(&cursor, 0));
    *program = cursor;
    return !cursor.failed;
}

static int by_start(const void *one, const void *other) {
    const struct range *a = one, *b = other;
    return (a->start > b->start) - (a->start < b->start);
}

static void add_range(struct image *image, uint64_t start, uint64_t place) {
    if (!(image->range_count & (image->range_count + 1)) || image->range_count < 8) {
        size_t room = image->range_count < 8 ? 16 : (image->range_count + 1) * 2;
        struct range *more = realloc(image->ranges, room * sizeof(*more));
        if (!more)
            return;
        image->ranges = more;
    }
    image->ranges[image->range_count++] = (struct range){start, place};
}

/* The table of a header (`.eh_frame_hdr`) at a place in the region; false where it is of a kind that is not read. */
static int index_header(struct image *image, uint64_t place) {
    struct cursor cursor = cursor_at(image, place);
    uint64_t own = image->region_address + place;
    take(&cursor, 1);
    unsigned table = (unsigned)take(&cursor, 1), counts = (unsigned)take(&cursor, 1), kind = (unsigned)take(&cursor, 1);
    take_pointer(&cursor, table, image);
    if (counts == OMITTED || kind != (DATA_RELATIVE | SIGNED_4))
        return 0;
    uint64_t count = take_pointer(&cursor, counts, image);
    if (cursor.failed || count > (uint64_t)(cursor.end - cursor.at) / 8 || !count)
        return 0;
    image->ranges = malloc(count * sizeof(*image->ranges));
    if (!image->ranges)
        return 0;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = own + (uint64_t)(int64_t)(int32_t)take(&cursor, 4);
        uint64_t entry = own + (uint64_t)(int64_t)(int32_t)take(&cursor, 4);
        image->ranges[i] = (struct range){start, entry - image->region_address};
    }
    image->range_count = count;
    return 1;
}

/* The same by reading all entries, of programs that have no such table, as static ones. */
static void index_entries(struct image *image) {
    struct cursor content, program;
    struct common common;
    uint64_t start, size;
    for (uint64_t place = 0; entry_at(image, place, &content); place = (uint64_t)(content.end - image->region))
        if (read_description(image, place, &common, &program, &start, &size) && size)
            add_range(image, start, place);
    qsort(image->ranges, image->range_count, sizeof(*image->ranges), by_start);
}

static int read_sections(struct image *image, const Elf64_Ehdr *file) {
    Elf64_Shdr names, section;
    char text[16];
    if (file->e_shentsize != sizeof(section) || file->e_shstrndx >= file->e_shnum ||
        !read_part(image, file->e_shoff + file->e_shstrndx * sizeof(section), &names, sizeof(names)))
        return 0;
    for (size_t i = 0; i < file->e_shnum; i++)
        if (read_part(image, file->e_shoff + i * sizeof(section), &section, sizeof(section)) &&
            read_part(image, names.sh_offset + section.sh_name, text, sizeof(text)) && !memcmp(text, ".eh_frame", 10) &&
            section.sh_type != SHT_NOBITS && read_region(image, section.sh_addr, section.sh_offset, section.sh_size)) {
            index_entries(image);
            return image->range_count > 0;
        }
    return 0;
}

static int read_image(struct image *image) {
    Elf64_Ehdr file;
    Elf64_Phdr segment, frames = {0};
    if (!read_part(image, 0, &file, sizeof(file)) || memcmp(file.e_ident, ELFMAG, SELFMAG) ||
        file.e_ident[EI_CLASS] != ELFCLASS64 || file.e_machine != EM_X86_64 || file.e_phentsize != sizeof(segment))
        return 0;
    for (size_t i = 0; i < file.e_phnum; i++) {
        if (!read_part(image, file.e_phoff + i * sizeof(segment), &segment, sizeof(segment)))
            return 0;
        if (segment.p_type == PT_LOAD && image->segment_count < MAX_SEGMENTS)
            image->segments[image->segment_count++] =
                (struct segment){segment.p_offset, segment.p_vaddr, segment.p_filesz};
        if (segment.p_type == PT_GNU_EH_FRAME)
            frames = segment;
    }
    for (size_t i = 0; i < image->segment_count && frames.p_memsz; i++) {
        struct segment *one = &image->segments[i];
        if (frames.p_vaddr < one->address || frames.p_vaddr >= one->address + one->size)
            continue;
        /* The descriptions lie in the same segment as the header, mostly behind it. */
        if (read_region(image, one->address, one->offset, one->size) &&
            index_header(image, frames.p_vaddr - one->address))
            return 1;
        free(image->region);
        image->region = NULL;
    }
    return read_sections(image, &file);
}

static struct image *opened(struct image *image) {
    static uint64_t number;
    if (read_image(image)) {
        image->number = ++number;
        return image;
    }
    free(image->region);
    free(image->ranges);
    free(image);
    return NULL;
}

struct image *image_open(const char *path) {
    struct image *image = calloc(1, sizeof(*image)), *found;
    struct stat about;
    if (!image)
        return NULL;
    image->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (image->file < 0 || fstat(image->file, &about) || !S_ISREG(about.st_mode)) {
        if (image->file >= 0)
            close(image->file);
        free(image);
        return NULL;
    }
    int file = image->file;
    found = opened(image);
    close(file);
    return found;
}

struct image *image_of_vdso(void) {
    struct image *image = calloc(1, sizeof(*image));
    if (!image || !(image->memory = (const uint8_t *)getauxval(AT_SYSINFO_EHDR))) {
        free(image);
        return NULL;
    }
    image->memory_size = 4096; /* the least; its tables lie in the first page */
    return opened(image);
}

uint64_t image_address(const struct image *image, uint64_t offset) {
    for (size_t i = 0; i < image->segment_count; i++)
        if (offset - image->segments[i].offset < image->segments[i].size)
            return offset - image->segments[i].offset + image->segments[i].address;
    return offset;
}

/* The rules by which the registers of the caller are found. */

enum kind { SAME, UNDEFINED, AT_OFFSET, IS_OFFSET, IN_REGISTER, AT_EXPRESSION, IS_EXPRESSION };

struct rule {
    enum kind kind;
    int64_t value;
    struct cursor expression;
};

struct row {
    struct rule frame; /* IN_REGISTER: of the number `register`, plus `value`; or IS_EXPRESSION */
    unsigned frame_register;
    struct rule rules[REGISTERS];
};

/* Execute the instructions up to those of `address`. */
static int run_program(const struct image *image, struct cursor program, const struct common *common, uint64_t location,
                       uint64_t address, const struct row *initial, struct row *row) {
    struct row saved[MAX_SAVED];
    unsigned depth = 0;
    while (program.at < program.end && !program.failed) {
        unsigned code = (unsigned)take(&program, 1), number = code & 0x3f;
        uint64_t length;
        switch (code & 0xc0) {
        case 0x40: /* advance_loc */
            location += number * common->code_factor;
            if (location > address)
                return 1;
            continue;
        case 0x80: /* offset */
            length = take_leb(&program, 0);
            if (number < REGISTERS)
                row->rules[number] = (struct rule){AT_OFFSET, (int64_t)length * common->data_factor, {0}};
            continue;
        case 0xc0: /* restore */
            if (number < REGISTERS)
                row->rules[number] = initial->rules[number];
            continue;
        }
        struct rule rule = {SAME, 0, {0}};
        uint64_t which = 0;
        switch (code) {
        case 0x00: continue; /* nop */
        case 0x01: location = take_pointer(&program, common->encoding, image); break; /* set_loc */
        case 0x02: location += take(&program, 1) * common->code_factor; break;
        case 0x03: location += take(&program, 2) * common->code_factor; break;
        case 0x04: location += take(&program, 4) * common->code_factor; break;
        case 0x0a: /* remember_state */
            if (depth == MAX_SAVED)
                return 0;
            saved[depth++] = *row;
            continue;
        case 0x0b: /* restore_state */
            if (!depth)
                return 0;
            *row = saved[--depth];
            continue;
        case 0x0c: /* def_cfa */
            row->frame_register = (unsigned)take_leb(&program, 0);
            row->frame = (struct rule){IN_REGISTER, (int64_t)take_leb(&program, 0), {0}};
            continue;
        case 0x0d: row->frame_register = (unsigned)take_leb(&program, 0); continue;
        case 0x0e: row->frame.value = (int64_t)take_leb(&program, 0); continue;
        case 0x12:
            row->frame_register = (unsigned)take_leb(&program, 0);
            row->frame = (struct rule){IN_REGISTER, (int64_t)take_leb(&program, 1) * common->data_factor, {0}};
            continue;
        case 0x13: row->frame.value = (int64_t)take_leb(&program, 1) * common->data_factor; continue;
        case 0x0f: /* def_cfa_expression */
            length = take_leb(&program, 0);
            row->frame = (struct rule){IS_EXPRESSION, 0, program};
            skip(&program, length);
            row->frame.expression.end = program.at;
            continue;
        case 0x2e: take_leb(&program, 0); continue; /* GNU_args_size */
        default:
            which = take_leb(&program, 0);
            switch (code) {
            case 0x05: rule = (struct rule){AT_OFFSET, (int64_t)take_leb(&program, 0) * common->data_factor, {0}}; break;
            case 0x06:
                if (which < REGISTERS)
                    row->rules[which] = initial->rules[which];
                continue;
            case 0x07: rule.kind = UNDEFINED; break;
            case 0x08: break; /* same_value */
            case 0x09: rule = (struct rule){IN_REGISTER, (int64_t)take_leb(&program, 0), {0}}; break;
            case 0x10: case 0x16:
                length = take_leb(&program, 0);
                rule = (struct rule){code == 0x10 ? AT_EXPRESSION : IS_EXPRESSION, 0, program};
                skip(&program, length);
                rule.expression.end = program.at;
                break;
            case 0x11: rule = (struct rule){AT_OFFSET, (int64_t)take_leb(&program, 1) * common->data_factor, {0}}; break;
            case 0x14: rule = (struct rule){IS_OFFSET, (int64_t)take_leb(&program, 0) * common->data_factor, {0}}; break;
            case 0x15: rule = (struct rule){IS_OFFSET, (int64_t)take_leb(&program, 1) * common->data_factor, {0}}; break;
            default: return 0;
            }
            if (which < REGISTERS)
                row->rules[which] = rule;
            continue;
        }
        if (location > address)
            return 1;
    }
    return !program.failed;
}

int stack_word(const struct stack_copy *stack, uint64_t address, uint64_t *word) {
    uint64_t place = address - stack->start;
    if (address < stack->start || stack->size < 8 || place > stack->size - 8)
        return 0;
    memcpy(word, stack->data + place, 8);
    return 1;
}

/* What an expression of DWARF says; false where it cannot be told. */
static int evaluate(struct cursor code, const uint64_t *registers, const struct stack_copy *stack, const uint64_t *first,
                    uint64_t *result) {
    uint64_t words[MAX_WORDS];
    size_t depth = 0;
    if (first)
        words[depth++] = *first;
    while (code.at < code.end && !code.failed) {
        unsigned operation = (unsigned)take(&code, 1);
        uint64_t word, left;
        if (depth >= MAX_WORDS - 1)
            return 0;
        if (operation >= 0x30 && operation <= 0x4f) {
            words[depth++] = operation - 0x30;
            continue;
        }
        if (operation >= 0x70 && operation <= 0x80) {
            words[depth++] = registers[operation - 0x70] + take_leb(&code, 1);
            continue;
        }
        switch (operation) {
        case 0x03: case 0x0e: case 0x0f: words[depth++] = take(&code, 8); continue;
        case 0x08: words[depth++] = take(&code, 1); continue;
        case 0x09: words[depth++] = (uint64_t)(int8_t)take(&code, 1); continue;
        case 0x0a: words[depth++] = take(&code, 2); continue;
        case 0x0b: words[depth++] = (uint64_t)(int16_t)take(&code, 2); continue;
        case 0x0c: words[depth++] = take(&code, 4); continue;
        case 0x0d: words[depth++] = (uint64_t)(int32_t)take(&code, 4); continue;
        case 0x10: words[depth++] = take_leb(&code, 0); continue;
        case 0x11: words[depth++] = take_leb(&code, 1); continue;
        case 0x12:
            if (!depth)
                return 0;
            words[depth] = words[depth - 1];
            depth++;
            continue;
        }
        if (!depth)
            return 0;
        word = words[--depth];
        switch (operation) {
        case 0x06:
            if (!stack_word(stack, word, &words[depth++]))
                return 0;
            continue;
        case 0x13: continue; /* drop */
        case 0x19: words[depth++] = (int64_t)word < 0 ? -word : word; continue;
        case 0x1f: words[depth++] = -word; continue;
        case 0x20: words[depth++] = ~word; continue;
        case 0x23: words[depth++] = word + take_leb(&code, 0); continue;
        }
        if (!depth)
            return 0;
        left = words[--depth];
        switch (operation) {
        case 0x1a: left &= word; break;
        case 0x1c: left -= word; break;
        case 0x1e: left *= word; break;
        case 0x21: left |= word; break;
        case 0x22: left += word; break;
        case 0x24: left = word < 64 ? left << word : 0; break;
        case 0x25: left = word < 64 ? left >> word : 0; break;
        case 0x27: left ^= word; break;
        case 0x29: left = left == word; break;
        case 0x2a: left = (int64_t)left >= (int64_t)word; break;
        case 0x2b: left = (int64_t)left > (int64_t)word; break;
        case 0x2c: left = (int64_t)left <= (int64_t)word; break;
        case 0x2d: left = (int64_t)left < (int64_t)word; break;
        case 0x2e: left = left != word; break;
        default: return 0;
        }
        words[depth++] = left;
    }
    if (code.failed || !depth)
        return 0;
    *result = words[depth - 1];
    return 1;
}

static enum step apply(const struct row *row, uint64_t *registers, const struct stack_copy *stack, int is_signal) {
    uint64_t frame, found[REGISTERS];
    if (row->frame.kind == IS_EXPRESSION) {
        if (!evaluate(row->frame.expression, registers, stack, NULL, &frame))
            return STEP_CUT;
    } else if (row->frame.kind == IN_REGISTER && row->frame_register < REGISTERS)
        frame = registers[row->frame_register] + (uint64_t)row->frame.value;
    else
        return STEP_UNKNOWN;
    if (row->rules[REGISTER_IP].kind == UNDEFINED)
        return STEP_OUTMOST;
    memcpy(found, registers, sizeof(found));
    found[REGISTER_SP] = frame;
    for (unsigned i = 0; i < REGISTERS; i++) {
        const struct rule *rule = &row->rules[i];
        uint64_t place = frame + (uint64_t)rule->value;
        int is_there = 1;
        switch (rule->kind) {
        case AT_OFFSET: is_there = stack_word(stack, place, &found[i]); break;
        case IS_OFFSET: found[i] = place; break;
        case IN_REGISTER: found[i] = rule->value < REGISTERS ? registers[rule->value] : 0; break;
        case AT_EXPRESSION:
            is_there = evaluate(rule->expression, registers, stack, &frame, &place) && stack_word(stack, place, &found[i]);
            break;
        case IS_EXPRESSION: is_there = evaluate(rule->expression, registers, stack, &frame, &found[i]); break;
        case SAME: case UNDEFINED: break;
        }
        if (!is_there && i == REGISTER_IP)
            return STEP_CUT;
    }
    /* Stacks grow downwards: a caller that is not above is none. */
    if (row->rules[REGISTER_IP].kind == SAME || (found[REGISTER_SP] <= registers[REGISTER_SP] && !is_signal))
        return STEP_UNKNOWN;
    memcpy(registers, found, sizeof(found));
    return is_signal ? STEP_SIGNAL : STEP_CALLER;
}

/* Rows that were found before, of the usual kind: the frame is a register and a number, and registers lie in it. */
static const unsigned usual[] = {REGISTER_IP, REGISTER_FP, 3, 12, 13, 14, 15};
enum { USUAL = sizeof(usual) / sizeof(*usual), NOT_SAVED = INT32_MIN };
static struct cached {
    uint64_t image, address;
    int32_t value, places[USUAL];
    unsigned frame_register;
} cached[CACHED];

static struct cached *place_of(const struct image *image, uint64_t address) {
    return &cached[((address ^ image->number << 40) * 0x9e3779b97f4a7c15u) >> 49];
}

static void keep(struct cached *cache, const struct image *image, uint64_t address, const struct row *row) {
    struct cached made = {image->number, address, (int32_t)row->frame.value, {0}, row->frame_register};
    if (row->frame.kind != IN_REGISTER || row->frame_register >= REGISTERS || row->rules[REGISTER_IP].kind != AT_OFFSET)
        return;
    for (unsigned i = 0, at = 0; i < REGISTERS; i++) {
        for (at = 0; at < USUAL && usual[at] != i; at++)
            ;
        int is_saved = row->rules[i].kind == AT_OFFSET;
        if (at == USUAL && row->rules[i].kind != SAME && row->rules[i].kind != UNDEFINED)
            return;
        if (at < USUAL && !is_saved && row->rules[i].kind != SAME)
            return;
        if (at < USUAL)
            made.places[at] = is_saved ? (int32_t)row->rules[i].value : NOT_SAVED;
    }
    *cache = made;
}

static enum step apply_kept(const struct cached *cache, uint64_t *registers, const struct stack_copy *stack) {
    uint64_t frame = registers[cache->frame_register] + (uint64_t)(int64_t)cache->value, caller, word;
    if (!stack_word(stack, frame + (uint64_t)(int64_t)cache->places[0], &caller))
        return STEP_CUT;
    if (frame <= registers[REGISTER_SP])
        return STEP_UNKNOWN;
    for (unsigned i = 1; i < USUAL; i++)
        if (cache->places[i] != NOT_SAVED && stack_word(stack, frame + (uint64_t)(int64_t)cache->places[i], &word))
            registers[usual[i]] = word;
    registers[REGISTER_IP] = caller;
    registers[REGISTER_SP] = frame;
    return STEP_CALLER;
}

static const struct range *range_of(const struct image *image, uint64_t address) {
    size_t low = 0, high = image->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (image->ranges[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &image->ranges[low - 1] : NULL;
}

enum step image_step(const struct image *image, uint64_t address, uint64_t *registers, const struct stack_copy *stack) {
    struct cached *cache = place_of(image, address);
    if (cache->image == image->number && cache->address == address)
        return apply_kept(cache, registers, stack);
    const struct range *range = range_of(image, address);
    struct common common;
    struct cursor program;
    struct row row = {{SAME, 0, {0}}, 0, {{SAME, 0, {0}}}}, initial;
    uint64_t start, size;
    if (!range || !read_description(image, range->entry, &common, &program, &start, &size) || address - start >= size ||
        !run_program(image, common.program, &common, 0, UINT64_MAX, &row, &row))
        return STEP_UNKNOWN;
    initial = row;
    if (!run_program(image, program, &common, start, address, &initial, &row))
        return STEP_UNKNOWN;
    if (!common.is_signal)
        keep(cache, image, address, &row);
    return apply(&row, registers, stack, common.is_signal);
}
