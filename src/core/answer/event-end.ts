/**
 * Finds the chunk that completes a certain event, such as the one with which an answer ends, while the
 * chunks pass by. The client acts on the event as soon as its blank line is in, so svc must write to disk
 * before it forwards that chunk. Finding too much is harmless, missing the event is not.
 */
export class EventEnd {
  readonly #marks: readonly string[];
  /** One less than the longest mark: the longest start of a mark that is split over chunks. */
  readonly #markCharsMax: number;
  /** End of the bytes before, for a mark or a blank line that is split over chunks. */
  #tail = '';
  /** The mark has been seen; the blank line that ends its event has not. */
  #isMarked = false;

  /** `marks`: the event contains one of them. */
  constructor(marks: readonly string[]) {
    this.#marks = marks;
    this.#markCharsMax = Math.max(...this.#marks.map((mark) => mark.length)) - 1;
  }

  /** True when the event may be whole with this chunk. Each chunk once, in order, one byte a character. */
  isIn(chunk: string): boolean {
    const text = this.#tail === '' ? chunk : this.#tail + chunk;
    const first = this.#isMarked ? 0 : this.#markIn(text);
    if (first === -1) {
      this.#tail = text.charCodeAt(text.length - 1) === LF ? '' : text.slice(-this.#markCharsMax);
      return false;
    }
    // The model may write about marks: the last one decides what is still to come.
    const last = Math.max(
      this.#isMarked ? 0 : -1,
      ...this.#marks.map((mark) => text.lastIndexOf(mark)),
    );
    this.#isMarked = !BLANK_LINE.test(text.slice(last));
    this.#keepTail(text);
    return BLANK_LINE.test(text.slice(first));
  }

  #keepTail(text: string): void {
    if (this.#isMarked) this.#tail = text.slice(-BLANK_CHARS_MAX);
    else
      this.#tail = text.charCodeAt(text.length - 1) === LF ? '' : text.slice(-this.#markCharsMax);
  }

  #markIn(text: string): number {
    // A loop without an iterator: this runs for every chunk.
    for (let nth = 0; nth < this.#marks.length; nth += 1) {
      const at = text.indexOf(this.#marks[nth] ?? '');
      if (at !== -1) return at;
    }
    return -1;
  }
}

const LF = 10;
/** A blank line is at most two line ends of two characters; the last one arrives with the chunk. */
const BLANK_CHARS_MAX = 3;
const BLANK_LINE = /(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)/;
