import { isInstalled } from '../../adapters/foreign/client-files.ts';
import type { Dialect } from '../../core/conversation/view.ts';
import { type Draft, upstreamEntries } from '../../core/settings/config-draft.ts';
import { reportError } from '../cli-error.ts';
import { CLAUDE } from '../clients/launch-claude.ts';
import { CODEX } from '../clients/launch-codex.ts';
import { takesLogin } from '../clients/launch.ts';
import { writeOther } from '../clients/other-config.ts';
import { OTHER_CLIENTS } from '../clients/other-clients.ts';
import { writeClaudeConfig, writeCodexConfig } from '../clients/write-config.ts';
import type { CommandContext } from '../context.ts';
import type { StartedClient } from './setup-save.ts';
import type { Answers, Wiring } from './wizard-answers.ts';
import { confirm, select } from './wizard-prompts.ts';

/** Which of the clients that are installed here shall use svc however they are started. */

interface WirableClient {
  readonly name: string;
  readonly title: string;
  readonly program: string;
  readonly dialects: readonly Dialect[];
  /** It has a login of its own that svc can pass on. */
  readonly hasLogin: boolean;
  /** Changes its own file. True where the client starts the proxy by itself from then on. */
  write(context: CommandContext, script: string): Promise<boolean>;
}

const CLIENTS: readonly WirableClient[] = [
  {
    ...CLAUDE,
    name: 'claude',
    title: 'Claude Code',
    hasLogin: true,
    write: (context, script) => writeClaudeConfig({}, context, { script }),
  },
  {
    ...CODEX,
    name: 'codex',
    title: 'Codex',
    hasLogin: true,
    write: (context, script) => writeCodexConfig({}, context, { script }),
  },
  ...OTHER_CLIENTS.filter(({ file }) => typeof file !== 'string').map((client): WirableClient => ({
    ...client,
    // The wizard asks for no model: a client that must be told one is left to `svc print-config`.
    dialects: client.dialects.filter((one) => client.needsModel?.includes(one) !== true),
    hasLogin: false,
    write: (context, script) => writeOther(client, {}, { context, script }),
  })),
];

/** Asks only when there is a client that was not offered before. */
export async function askClients(answers: Answers): Promise<Wiring> {
  const { context, dependencies, draft, wiring } = answers;
  const found = CLIENTS.filter(
    (client) => isInstalled(context.environment, client.program) && isServed(client, draft),
  );
  const offered = found.map(({ name }) => name);
  const known = wiring?.offered ?? [];
  const isKnown = offered.every((name) => known.includes(name));
  if (found.length === 0 || (wiring !== undefined && isKnown)) {
    const chosen = wiring?.chosen.filter((name) => offered.includes(name)) ?? [];
    return { offered, chosen };
  }
  const titles = listText(found.map(({ title }) => title));
  const choice = await select(
    {
      message: `Should ${titles} use svc from now on?`,
      choices: [
        {
          value: 'all' as const,
          name: found.length === 1 ? 'Yes' : `Yes: ${titles}`,
          description: `svc changes ${found.length === 1 ? 'its settings file' : 'their settings files'}; svc uninstall restores every byte`,
        },
        ...(found.length === 1
          ? []
          : [{ value: 'some' as const, name: 'Some of them', description: 'svc asks for each' }]),
        {
          value: 'none' as const,
          name: 'No, I start them with svc run',
          description: `svc changes no file: svc run ${found[0]?.name ?? ''}`,
        },
      ],
    },
    dependencies.streams,
  );
  if (choice === 'none') return { offered, chosen: [] };
  if (choice === 'all') return { offered, chosen: offered };
  const chosen: string[] = [];
  for (const { name, title } of found) {
    // oxlint-disable-next-line no-await-in-loop -- One question after the other.
    if (await confirm({ message: `Should ${title} use svc?` }, dependencies.streams))
      chosen.push(name);
  }
  return { offered, chosen };
}

function isServed({ dialects, hasLogin }: WirableClient, draft: Draft): boolean {
  return upstreamEntries(draft).some((one) => {
    const isSpoken = dialects.some((dialect) => one['apiStyle'] === dialect);
    return isSpoken && (hasLogin || !takesLogin(one));
  });
}

/** Changes the chosen clients' files. One that cannot be changed is told, and does not stop the others. */
export async function wireClients(
  { chosen }: Wiring,
  context: CommandContext,
  script: string,
): Promise<{ readonly wired: readonly StartedClient[]; readonly failed: number }> {
  const wired: StartedClient[] = [];
  let failed = 0;
  for (const client of CLIENTS.filter(({ name }) => chosen.includes(name))) {
    try {
      // oxlint-disable-next-line no-await-in-loop -- Their records share one lock.
      const startsProxy = await client.write(context, script);
      wired.push({ program: client.program, startsProxy });
    } catch (error) {
      failed += 1;
      reportError(error, context.terminal);
      context.terminal.warn(`${client.title} does not use svc yet.`);
    }
  }
  return { wired, failed };
}

/** As a person knows them. */
export function clientTitles(names: readonly string[]): readonly string[] {
  return CLIENTS.filter(({ name }) => names.includes(name)).map(({ title }) => title);
}

/** `a`, `a and b`, `a, b and c` */
export function listText(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`;
}
