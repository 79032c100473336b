import { expect, test } from 'vitest';
import { serviceCommandTree } from '../../../test/support/command-tree.ts';
import { consoleContract } from '../../../test/support/memory-api.ts';
import { OPERATIONS } from '../../src/server/console/console.ts';

/** What a person can do over HTTP can be done with a command, on this machine or with `--url`. */

/** A program asks this for itself; one purge stands in the list; `status` asks more than the service. */
const WITHOUT = ['getMemoryPurge', 'getSession', 'getStatus'];

const { paths } = consoleContract as {
  paths: Readonly<Record<string, Readonly<Record<string, { operationId: string }>>>>;
};

test('each operation of the console has a command, with --url and --json', () => {
  const operations = Object.entries(paths)
    .filter(([path]) => path.startsWith('/v1/svc/console/'))
    .flatMap(([, methods]) => Object.values(methods).map(({ operationId }) => operationId));
  expect(operations.toSorted()).toEqual(OPERATIONS.map(({ name }) => name).toSorted());
  const without = OPERATIONS.filter(({ commands }) => commands.length === 0);
  expect(without.map(({ name }) => name).toSorted()).toEqual(WITHOUT);
  const known = new Map(serviceCommandTree().map((command) => [command.path, command.flags]));
  const commands = OPERATIONS.flatMap((row) => row.commands.map(({ name }) => name));
  const wrong = [...commands, 'status'].filter((name) => {
    const flags = known.get(name)?.join(' ') ?? '';
    return !flags.includes('--url') || !flags.includes('--json');
  });
  expect(wrong).toEqual([]);
});
