import { randomBytes } from 'node:crypto';
import { digestOf, isOneOf } from '../../core/http/local-token.ts';
import type { Clock } from '../../ports/clock.ts';

/**
 * The secrets with which a page uses its API. A page exchanges a link, which works once, for a cookie and a secret that
 * only the page has. A browser sends the cookie to every port of this machine, so other programs may see it. Each of
 * the two is useless without the other. svc stores only their digests, in this process.
 */
interface UiSession {
  readonly cookie: string;
  readonly secret: string;
}

/** How long a link works, a session lasts, and a session may be unused; in milliseconds. */
export const UI_TIMES = {
  linkMs: 60_000,
  sessionMs: 12 * 3_600_000,
  idleMs: 3_600_000,
} as const;

/** Bounds on unused links and on sessions. Above them the oldest is dropped. */
const LINKS_MAX = 16;
const SESSIONS_MAX = 16;
const SECRET_BYTES = 32;

interface Link {
  readonly digest: Buffer;
  readonly at: number;
}

interface KnownSession {
  readonly cookie: Buffer;
  readonly secret: Buffer;
  readonly at: number;
  usedAt: number;
}

/** A session without its secrets. */
export interface SessionHandle {
  /** Returns false if the session has ended: by time, by the user, or because there are SESSIONS_MAX newer ones. */
  isOpen(): boolean;
  close(): void;
}

export class UiSessions {
  readonly #clock: Clock;
  #links: readonly Link[] = [];
  #sessions: readonly KnownSession[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  newLink(): string {
    const code = newSecret();
    this.#links = [...this.#freshLinks(), { digest: digestOf(code), at: this.#clock.now() }].slice(
      -LINKS_MAX,
    );
    return code;
  }

  /** Exchanges the code of a link for a session; undefined if the code is unknown, expired or used. */
  redeem(code: string): UiSession | undefined {
    const links = this.#freshLinks();
    const used = links.filter(({ digest }) => isOneOf([code], [digest]));
    this.#links = links.filter((link) => !used.includes(link));
    if (used.length === 0) return undefined;
    const session = { cookie: newSecret(), secret: newSecret() };
    const now = this.#clock.now();
    const known = {
      cookie: digestOf(session.cookie),
      secret: digestOf(session.secret),
      at: now,
      usedAt: now,
    };
    this.#sessions = [...this.#sessions.filter((one) => this.#isOpen(one)), known].slice(
      -SESSIONS_MAX,
    );
    return session;
  }

  /** Returns the open session with these secrets, if there is one, and notes that it is used now. */
  find({ cookie, secret }: UiSession): SessionHandle | undefined {
    const session = this.#sessions.find(
      (one) => isOneOf([cookie], [one.cookie]) && isOneOf([secret], [one.secret]),
    );
    if (session === undefined || !this.#isOpen(session)) return undefined;
    session.usedAt = this.#clock.now();
    return {
      isOpen: () => this.#sessions.includes(session) && this.#isOpen(session),
      close: () => {
        this.#sessions = this.#sessions.filter((one) => one !== session);
      },
    };
  }

  #freshLinks(): readonly Link[] {
    return this.#links.filter(({ at }) => this.#isWithin(at, UI_TIMES.linkMs));
  }

  #isOpen({ at, usedAt }: KnownSession): boolean {
    return this.#isWithin(at, UI_TIMES.sessionMs) && this.#isWithin(usedAt, UI_TIMES.idleMs);
  }

  /** Says whether `from` is at most `ms` ago. False if `from` is in the future, as after a clock was set back. */
  #isWithin(from: number, ms: number): boolean {
    const age = this.#clock.now() - from;
    return age >= 0 && age <= ms;
  }
}

function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}
