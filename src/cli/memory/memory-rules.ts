import { deadline, readStore, withStore } from '../store.ts';
import { captureStored } from '../../core/memory/captures.ts';
import { rulesIn } from '../../core/recall/rules.ts';
import type { DeskRule, MemoryDesk } from '../../ports/memory-desk.ts';
import { CliError } from '../cli-error.ts';
import type { CommandContext, Call } from '../context.ts';
import { timeText } from '../listing.ts';
import { oneLine } from '../terminal.ts';
import { namesOf } from './named.ts';
import { isKept } from './record-writer.ts';

interface RulesOptions {
  readonly space?: string;
  /** True: also list rules that were replaced or retired. */
  readonly all?: boolean;
  readonly retire?: string;
  readonly restore?: string;
  readonly pin?: string;
  readonly edit?: string;
  readonly json?: boolean;
}

/** Bound on the characters of a rule in the list. No rule reaches it, because svc stores at most 280. */
const TEXT_CHARS_MAX = 300;

const STATES: Readonly<Record<DeskRule['state'], string>> = {
  holds: '',
  pinned: ' [pinned]',
  replaced: ' [replaced]',
  retired: ' [retired]',
};

export function isInForce({ state }: Pick<DeskRule, 'state'>): boolean {
  return state === 'holds' || state === 'pinned';
}

/**
 * Runs `svc memory rules`: shows the rules and corrections that the user stated, with their states, and changes them.
 * `args`: the words of the new sentence for --edit.
 */
export async function showRules({ args, options, context }: Call<RulesOptions>): Promise<void> {
  const words = args.join(' ');
  const changes = [options.retire, options.restore, options.pin, options.edit].filter(
    (id) => id !== undefined,
  );
  if (changes.length > 1) {
    throw new CliError('One change at a time.', 'For example: svc memory rules --retire r_…', 2);
  }
  if ((words !== '') !== (options.edit !== undefined)) {
    throw new CliError(
      'A new sentence belongs to --edit.',
      'For example: svc memory rules --edit r_… "Always use pnpm here."',
      2,
    );
  }
  const useStore = changes.length === 0 ? readStore : withStore;
  const rules = await useStore(context, async ({ memory, desk }) => {
    if (desk === undefined) return undefined;
    const [id] = changes;
    if (id !== undefined) {
      const rule = await ruleOf(desk, id);
      const at = Date.now();
      let stated: readonly string[] = [];
      if (options.edit !== undefined) {
        const record = editedRecord(rule, words);
        stated = rulesIn(record.text);
        const [state] = await memory.capture([record], deadline());
        if (!isKept(state)) {
          throw new CliError('The memory refused the sentence.', 'Check with: svc doctor');
        }
      }
      await desk.markRule({ id, mark: markOf(options), at });
      // The new sentence may equal one that an earlier edit has retired, so remove that one's mark.
      const back = (await desk.rules({ space: rule.space })).filter(
        ({ text, state }) => state === 'retired' && stated.includes(text),
      );
      // oxlint-disable-next-line no-await-in-loop -- One sentence, nearly always.
      for (const one of back) await desk.markRule({ id: one.id, mark: undefined, at });
    }
    return desk.rules(options.space === undefined ? {} : { space: options.space });
  });
  const { terminal } = context;
  if (rules === undefined) {
    throw new CliError(
      'A memory service has no list of rules.',
      'Forget the memory that states the rule: svc memory search "…", svc memory forget m_…',
    );
  }
  const shown = rules.filter((rule) => options.all === true || isInForce(rule));
  if (options.json === true) terminal.json(shown);
  else printRules(shown, context);
  if (shown.length === 0) {
    terminal.note('No rules. svc finds sentences like "always use pnpm here" in what you say.');
  }
  if (options.retire !== undefined) {
    terminal.note(
      'Retired. A running conversation keeps the blocks that it has until its client compacts it.',
    );
  }
  const hidden = rules.length - shown.length;
  if (hidden > 0) terminal.note(`Replaced or retired: ${hidden}. See them with --all`);
}

function markOf({ retire, pin, edit }: RulesOptions): 'retired' | 'pinned' | undefined {
  if (retire !== undefined || edit !== undefined) return 'retired';
  return pin === undefined ? undefined : 'pinned';
}

async function ruleOf(desk: MemoryDesk, id: string): Promise<DeskRule> {
  const found = (await desk.rules({})).find((rule) => rule.id === id);
  if (found !== undefined) return found;
  throw new CliError(
    `There is no rule ${oneLine(id, 64)}.`,
    'The ids are in: svc memory rules --all',
  );
}

/** Returns a record of the new sentence in the rule's space, as if the user had said the sentence. */
function editedRecord(rule: DeskRule, words: string) {
  const captured = captureStored('user', words);
  if (captured === undefined || rulesIn(captured.text).length === 0) {
    throw new CliError(
      'svc does not read this sentence as a rule.',
      'Say that it is for good: "always …", "never …", "from now on …".',
      2,
    );
  }
  const at = Date.now();
  const place = { conversation: `added_rule_${at}`, fingerprint: '', exchange: 0 };
  return { ...captured, ...place, space: rule.space, client: 'svc', at, isTimed: true as const };
}

function printRules(rules: readonly DeskRule[], context: CommandContext): void {
  const { terminal } = context;
  const names = namesOf(rules, context);
  let last = '';
  for (const { id, text, at, client, ref, state, space } of rules) {
    if (space !== last) terminal.out(names.of(space));
    last = space;
    const said = `${timeText(at)}, ${client}, ${ref}`;
    const line = `  ${id}  ${oneLine(text, TEXT_CHARS_MAX)}${STATES[state]} (${said})`;
    terminal.row(line, '      ');
  }
}
