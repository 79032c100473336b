import { isDigest, referenceOf } from '../../../../src/core/memory/reference.ts';
import { proofOf } from '../../../../src/core/shortening/proofs.ts';
import type {
  Coverage,
  MissingReason,
  NamedRecord,
  NameQuestion,
  RetrieveAnswer,
  RetrieveQuestion,
  ServiceQuestion,
  StoredObject,
} from '../../ports/service-store.ts';
import type { Rows } from '../../ports/rows.ts';
import { type OriginRow, originOf } from './row-shapes.ts';
import { bareState, type Spaces } from './spaces.ts';
import { MEMORY } from './statements.ts';

/** Records as their canonical bytes: proven, given back, named. */

/** A reference without a space may name a record in each of several spaces. */
const OBJECTS_MAX = 256;
const NAMED_MAX = 1000;
/** Proofs between two looks at the clock: one statement, 100 kB of records. */
const PROOFS_PER_LOOK = 64;

interface ProofRow {
  readonly digest: string;
  readonly text_digest: string | null;
  readonly ref: string;
  readonly redactions: number;
  readonly bytes: Uint8Array;
}

interface RetrievedRow extends OriginRow {
  readonly kind: StoredObject['kind'];
  readonly tool_name: string | null;
  readonly size: number;
  readonly bytes: Uint8Array;
}

export class Records {
  readonly #rows: Rows;
  readonly #tenant: string;
  readonly #spaces: Spaces;

  constructor(rows: Rows, tenant: string, spaces: Spaces) {
    this.#rows = rows;
    this.#tenant = tenant;
    this.#spaces = spaces;
  }

  /**
   * Reads every byte that it proves. `isPartial`: the deadline left candidates unread. The first proofs
   * are asked for with the generation: one that is stale is seldom.
   */
  async prove(
    question: ServiceQuestion,
    state: Promise<{ readonly generation: string }>,
  ): Promise<{ coverage: Coverage[]; isPartial: boolean }> {
    const { candidates, ifGeneration, deadlineAt } = question;
    // A rejection of the state would have no handler here: its caller tells of it.
    if (candidates.length === 0) return { coverage: [], isPartial: false };
    const isStale = state.then(
      ({ generation }) => ifGeneration !== undefined && ifGeneration !== generation,
    );
    const coverage: Coverage[] = [];
    const leave = (from: number, left: 'stale_generation' | 'not_checked'): Coverage[] =>
      coverage.concat(candidates.slice(from).map((digest) => ({ digest, state: left })));
    for (let at = 0; at < candidates.length; at += PROOFS_PER_LOOK) {
      const isLate = Date.now() > deadlineAt;
      const some = isLate ? [] : candidates.slice(at, at + PROOFS_PER_LOOK);
      // oxlint-disable-next-line no-await-in-loop -- The clock is looked at in between.
      const [stale, proven] = await Promise.all([isStale, this.#proveSome(some, question)]);
      if (stale) return { coverage: leave(0, 'stale_generation'), isPartial: false };
      if (isLate) return { coverage: leave(at, 'not_checked'), isPartial: true };
      coverage.push(...proven);
    }
    return { coverage, isPartial: false };
  }

  async retrieve({ spaces, refs, bytesMax }: RetrieveQuestion): Promise<RetrieveAnswer> {
    const chosen = await this.#spaces.chosen(spaces);
    const objects: StoredObject[] = [];
    const missing: { ref: string; reason: MissingReason }[] = [];
    let bytes = 0;
    for (const ref of new Set(refs)) {
      // oxlint-disable-next-line no-await-in-loop -- One connection answers one after the other.
      const rows = await this.#find(ref, chosen);
      // oxlint-disable-next-line no-await-in-loop
      if (rows.length === 0) missing.push({ ref, reason: await this.#whyMissing(ref, chosen) });
      for (const row of rows) {
        if (bytes + row.size > bytesMax || objects.length === OBJECTS_MAX) {
          missing.push({ ref, reason: 'over_max_bytes' });
          break;
        }
        bytes += row.size;
        const tool = row.tool_name === null ? {} : { toolName: row.tool_name };
        const whole = new Uint8Array(row.bytes);
        objects.push({ kind: row.kind, bytes: whole, ...tool, origin: originOf(row) });
      }
    }
    const state = 'space' in spaces ? bareState(await this.#spaces.state(spaces.space)) : undefined;
    return { state, objects, missing };
  }

  async lookUp({ spaces, names }: NameQuestion): Promise<NamedRecord[]> {
    const chosen = await this.#spaces.chosen(spaces);
    const found: NamedRecord[] = [];
    for (const name of names) {
      // oxlint-disable-next-line no-await-in-loop -- One connection answers one after the other.
      const rows = await this.#rows.all<{ space: string; digest: string; text_ref: string | null }>(
        MEMORY.nameRecords,
        this.#tenant,
        chosen,
        ...recordNamed(name),
        NAMED_MAX,
      );
      found.push(
        ...rows.map(({ text_ref: textRef, ...row }) =>
          textRef === null ? row : { ...row, textRef },
        ),
      );
    }
    return found;
  }

  async #proveSome(
    names: readonly string[],
    { space, nonce }: Pick<ServiceQuestion, 'space' | 'nonce'>,
  ): Promise<Coverage[]> {
    if (names.length === 0) return [];
    const texts = names.filter(isDigest);
    const held = await this.#rows.all<ProofRow>(
      MEMORY.recordsForProof,
      this.#tenant,
      space,
      names,
      texts.map(referenceOf),
      texts,
    );
    const found = new Map<string, ProofRow>();
    // The first record of a text represents it.
    for (const row of held.toReversed()) {
      if (row.text_digest !== null) found.set(row.text_digest, row);
      found.set(row.digest, row);
    }
    const lost = names.filter((name) => !found.has(name));
    const purged = lost.length === 0 ? new Set<string>() : await this.#purgedOf(lost, space);
    return names.map((digest) => {
      const row = found.get(digest);
      if (row === undefined) return { digest, state: purged.has(digest) ? 'purged' : 'unknown' };
      // A masked record is another text than the one in the prompt: never to be left out.
      if (row.redactions > 0) return { digest, state: 'not_checked' };
      const { ref, bytes } = row;
      return { digest, state: 'durable', bytes: bytes.length, pop: proofOf(nonce, bytes), ref };
    });
  }

  async #purgedOf(names: readonly string[], space: string): Promise<ReadonlySet<string>> {
    const refs = new Map(names.filter(isDigest).map((name) => [referenceOf(name), name]));
    const rows = await this.#rows.all<{ digest: string; text_ref: string | null }>(
      MEMORY.purgedForProof,
      this.#tenant,
      space,
      names,
      [...refs.keys()],
    );
    return new Set(rows.flatMap((row) => [row.digest, refs.get(row.text_ref ?? '') ?? []].flat()));
  }

  #find(name: string, spaces: readonly number[]): Promise<RetrievedRow[]> {
    const named = recordNamed(name);
    return this.#rows.all(MEMORY.findRecords, this.#tenant, spaces, ...named, OBJECTS_MAX);
  }

  async #whyMissing(name: string, spaces: readonly number[]): Promise<MissingReason> {
    const values = [this.#tenant, spaces, ...purgedNamed(name)] as const;
    const found = await this.#rows.get(MEMORY.wasPurged, ...values);
    return found === undefined ? 'unknown' : 'purged';
  }
}

/**
 * The names of a record as values of a statement. A record has several: the digest and the reference of its
 * bytes and, where it holds one text and no more, the digest and the reference of that text. The reference
 * of a text is the beginning of its digest, and the tables have an index of it.
 */

const TEXT_REFERENCE_START = /^m_[a-z2-7]{0,15}$/;
/** No character of a reference comes after it. */
const AFTER_ALL = '{';

type NameValues = readonly [
  digest: string | null,
  ref: string | null,
  textRefFrom: string | null,
  textRefTo: string | null,
  textDigest: string | null,
];

function recordNamed(name: string): NameValues {
  if (isDigest(name)) return [null, null, referenceOf(name), referenceOf(name), name];
  if (TEXT_REFERENCE_START.test(name)) return [null, null, name, name + AFTER_ALL, null];
  if (name.startsWith('sha256:')) return [name, null, null, null, null];
  if (name.startsWith('m_')) return [null, null, name, name, null];
  return [null, name, null, null, null];
}

/** Digest, reference, reference of the text. */
function purgedNamed(name: string): readonly [string | null, string | null, string | null] {
  const known = isDigest(name) ? referenceOf(name) : name;
  if (known.startsWith('sha256:')) return [known, null, null];
  return known.startsWith('m_') ? [null, null, known] : [null, known, null];
}
