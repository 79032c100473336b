import { configPath } from '../../adapters/files/config-file.ts';
import { configFolder } from '../../adapters/files/config-folder.ts';
import type { ExitCode } from '../cli-error.ts';
import { storedUpstreams } from '../setup/missing-upstream.ts';
import type { CommandContext } from '../context.ts';
import { reportChecks } from './check-report.ts';
import { type Check, checkNode, checkPort } from './doctor-checks.ts';
import { checkClients } from './doctor-clients.ts';
import { checkHooks, hookedClients } from './doctor-hooks.ts';
import { checkConfig } from './doctor-config.ts';
import { fixAll } from './doctor-fix.ts';
import { checkProviders, checkRunning } from './doctor-live.ts';
import { checkHosted } from './doctor-hosted.ts';
import { checkStore } from './doctor-store.ts';
import { checkModelCalls, type Consent } from './doctor-model-calls.ts';
import type { OpenUpstream } from './key-check.ts';
import type { inspectStore } from './store-inspection.ts';
import { dataFolder } from '../../adapters/files/data-folder.ts';
import { FileError } from '../../adapters/files/file-error.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { lateCaptures } from '../proxy/late-captures.ts';

/** `svc doctor`: what is right, what is not, and the command that mends it. No secret, ever. */

export interface DoctorOptions {
  readonly json?: boolean;
  /** Asks no provider. */
  readonly offline?: boolean;
  readonly fix?: boolean;
  /** Sends model requests, which cost money. */
  readonly live?: boolean;
  /** Spends without a question. */
  readonly yes?: boolean;
  readonly model?: string;
}

export interface DoctorParts {
  readonly openUpstream: OpenUpstream;
  readonly inspectStore: typeof inspectStore;
  /** As process.versions.node has it. */
  readonly nodeVersion: string;
  /** Asks a person; absent where there is no terminal. */
  readonly confirm?: (message: string) => Promise<boolean>;
}

export async function doctor(
  options: DoctorOptions,
  { environment, terminal }: CommandContext,
  parts: DoctorParts,
): Promise<ExitCode> {
  if (options.fix === true) await fixAll({ environment, terminal });
  const checks = await runChecks(options, { environment, terminal }, parts);
  const facts = { config: configPath(configFolder(environment)) };
  return reportChecks({ checks, facts, isJson: options.json === true }, terminal);
}

const NOT_ASKED = { checks: [], unreachable: new Set<string>() };

async function runChecks(
  options: DoctorOptions,
  { environment, terminal }: CommandContext,
  parts: DoctorParts,
): Promise<readonly Check[]> {
  const { offline, live, model } = options;
  const agree = async (line: string): Promise<Consent> => {
    if (options.yes === true) {
      terminal.note(`${line}.`);
      return 'yes';
    }
    if (parts.confirm === undefined) return 'nobody';
    return (await parts.confirm(`${line}. Send them?`)) ? 'yes' : 'no';
  };
  const hooked = hookedClients(environment);
  const { checks: config, access } = await checkConfig(environment, hooked.length > 0);
  const { checks: proxies, isRunning } =
    access === undefined
      ? { checks: [], isRunning: false }
      : await checkRunning(environment, access);
  const { checks: providers, unreachable } =
    offline === true ? NOT_ASKED : await checkProviders(environment, parts.openUpstream);
  const { openUpstream: open } = parts;
  return [
    checkNode(parts.nodeVersion),
    ...config,
    ...(await checkStore(environment, parts.inspectStore)),
    ...(offline === true ? [] : await checkHosted(environment)),
    ...checkLateCaptures(environment, isRunning),
    ...(access === undefined ? [] : [await checkPort(access)]),
    ...proxies,
    ...providers,
    ...(live === true && access !== undefined
      ? await checkModelCalls({ environment, access, open, model, agree, unreachable })
      : []),
    ...checkClients({
      environment,
      access,
      isRunning,
      hooked,
      upstreams: await storedUpstreams(environment).catch(() => []),
    }),
    ...checkHooks(environment, process.cwd()),
  ];
}

/** Captures that no memory has taken for longer than that should last. */
function checkLateCaptures(environment: Environment, isRunning: boolean): readonly Check[] {
  try {
    const late = lateCaptures(dataFolder(environment), { now: Date.now(), isRunning });
    return late.map((one) => ({ level: 'warning', subject: 'Captures', ...one }));
  } catch (error) {
    // That the folder is not known is told where the store is looked at.
    if (error instanceof FileError) return [];
    throw error;
  }
}
