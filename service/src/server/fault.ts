import type { FaultBody, FaultCode } from '../../../src/core/memory-api/faults.ts';

export interface FaultDetails {
  /** Milliseconds after which the same call may pass. */
  readonly afterMs?: number;
  /** The member or parameter that is wrong. */
  readonly param?: string;
  readonly details?: FaultBody['error']['details'];
  /** Methods of the path, of a METHOD_NOT_ALLOWED. */
  readonly allow?: string;
}

/** This call is refused. The message is a constant plus safe fields: never a key, a text, a header. */
export class ServiceFault extends Error {
  override readonly name = 'ServiceFault';
  readonly code: FaultCode;
  readonly more: FaultDetails;

  constructor(code: FaultCode, message: string, more: FaultDetails = {}) {
    super(message);
    this.code = code;
    this.more = more;
  }
}
