import { isInstalled } from '../../adapters/foreign/client-files.ts';
import { type Draft, upstreamEntries } from '../../core/settings/config-draft.ts';
import { reportError } from '../cli-error.ts';
import { connect, CONNECTABLE, type ConnectableClient, connectNow } from '../clients/connect.ts';
import { takesLogin } from '../clients/launch.ts';
import type { CommandContext } from '../context.ts';
import type { StartedClient } from './setup-save.ts';
import type { Answers, Wiring } from './wizard-answers.ts';
import { confirm, select } from './wizard-prompts.ts';

/** Which of the clients that are installed here shall use svc however they are started. */

/** Asks only when there is a client that was not offered before. */
export async function askClients(answers: Answers): Promise<Wiring> {
  const { context, dependencies, draft, hooked, wiring } = answers;
  const found = CONNECTABLE.filter(
    (client) =>
      isInstalled(context.environment, client.program) &&
      isServed(client, draft) &&
      !hooked.some((login) => login === client.name),
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
          name: `No, I start ${found.length === 1 ? 'it' : 'them'} with svc run`,
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

function isServed({ dialects, hasLogin }: ConnectableClient, draft: Draft): boolean {
  return upstreamEntries(draft).some((one) => {
    const isSpoken = dialects.some((dialect) => one['apiStyle'] === dialect);
    return isSpoken && (hasLogin || !takesLogin(one));
  });
}

/** Changes the chosen clients' files. One that cannot be changed is told, and does not stop the others. */
export async function wireClients(
  { chosen, hooked }: Pick<Answers, 'hooked'> & Pick<Wiring, 'chosen'>,
  context: CommandContext,
  script: string,
): Promise<{ readonly wired: readonly StartedClient[]; readonly failed: number }> {
  const wired: StartedClient[] = [];
  let failed = 0;
  const hasHooks = ({ name }: ConnectableClient): boolean => hooked.some((one) => one === name);
  for (const client of CONNECTABLE.filter((one) => chosen.includes(one.name) || hasHooks(one))) {
    try {
      const startsProxy = hasHooks(client)
        ? // oxlint-disable-next-line no-await-in-loop -- Their records share one lock.
          (await connect(client.name, { hooks: true, yes: true }, context, { script })) === 0
        : // oxlint-disable-next-line no-await-in-loop -- As above.
          await connectNow(client, context, script);
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
  return CONNECTABLE.filter(({ name }) => names.includes(name)).map(({ title }) => title);
}

/** `a`, `a and b`, `a, b and c` */
export function listText(words: readonly string[]): string {
  const last = words.at(-1) ?? '';
  return words.length < 2 ? last : `${words.slice(0, -1).join(', ')} and ${last}`;
}
