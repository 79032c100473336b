import type { Memory } from '../../src/ports/memory.ts';

/** The memory, with some of its methods replaced. */
export function wrapped(memory: Memory, other: Partial<Memory>): Memory {
  return {
    supports: memory.supports,
    recall: (asked, signal) => memory.recall(asked, signal),
    capture: (records, signal) => memory.capture(records, signal),
    retrieve: (key, signal) => memory.retrieve(key, signal),
    list: (filter, signal) => memory.list(filter, signal),
    references: (start, signal) => memory.references(start, signal),
    forget: (filter, signal) => memory.forget(filter, signal),
    hold: (asked, signal) => memory.hold(asked, signal),
    close: () => memory.close(),
    ...other,
  };
}
