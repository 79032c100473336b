/** Half-open range of byte offsets in the decoded body: bytes.subarray(start, end) is the value. */
export interface Span {
  readonly start: number;
  readonly end: number;
}
