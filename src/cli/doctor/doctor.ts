import { existsSync } from 'node:fs';
import { configPath } from '../../adapters/files/config-file.ts';
import { CliError, type ExitCode } from '../cli-error.ts';
import { storedUpstreams } from '../setup/load-config.ts';
import type { CommandContext, Call } from '../context.ts';
import { reportChecks, type Check, checkNode, checkPort } from './checks.ts';
import { checkClients } from './doctor-clients.ts';
import { checkHooks, hookedClients } from './doctor-hooks.ts';
import { checkConfig, fixAll } from './doctor-config.ts';
import { checkProviders, checkRunning, checkModelCalls, type Consent } from './doctor-live.ts';
import { checkHosted } from './doctor-hosted.ts';
import { checkStore } from './doctor-store.ts';
import { createUpstream } from '../../adapters/network/undici-upstream.ts';
import { dataFolder, configFolder } from '../../adapters/files/own-folders.ts';
import { FileError } from '../../adapters/files/file-error.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { lateCaptures } from '../proxy/late-captures.ts';
import { recentMemoryTrouble } from '../proxy/recent-trouble.ts';
import { unitPrograms } from '../proxy/unit.ts';

/** Runs `svc doctor`: prints what is right, and each problem with its fix. It shows no whole key. */

interface DoctorOptions {
  readonly json?: boolean;
  /** True: call no provider and no memory service. */
  readonly offline?: boolean;
  readonly fix?: boolean;
  /** True: send model requests, which cost money. */
  readonly live?: boolean;
  /** True: send the model requests of `live` without asking the user. */
  readonly yes?: boolean;
  readonly model?: string;
}

export async function doctor({ options, context }: Call<DoctorOptions>): Promise<ExitCode> {
  const { environment, terminal } = context;
  if (options.offline === true && options.live === true) {
    throw new CliError('--offline and --live exclude each other.', 'See: svc doctor --help', 2);
  }
  if (options.fix === true) await fixAll(context);
  const checks = await runChecks(options, context);
  const facts = { config: configPath(configFolder(environment)) };
  return reportChecks({ checks, facts, isJson: options.json === true }, terminal);
}

const NOT_ASKED = { checks: [], unreachable: new Set<string>() };

async function runChecks(
  { offline = false, live, model, yes }: DoctorOptions,
  { environment, terminal, asker }: CommandContext,
): Promise<readonly Check[]> {
  const agree = async (line: string): Promise<Consent> => {
    if (yes === true) {
      terminal.note(`${line}.`);
      return 'yes';
    }
    const confirm = asker?.();
    if (confirm === undefined) return 'nobody';
    return (await confirm(`${line}. Send them?`)) ? 'yes' : 'no';
  };
  const hooked = hookedClients(environment);
  const { checks: config, access } = await checkConfig(environment, hooked.length > 0);
  const { checks: proxies, isRunning } =
    access === undefined
      ? { checks: [], isRunning: false }
      : await checkRunning(environment, access);
  const { checks: providers, unreachable } = offline
    ? NOT_ASKED
    : await checkProviders(environment, createUpstream);
  return [
    checkNode(process.versions.node),
    ...config,
    ...(await checkStore(environment)),
    ...(offline ? [] : await checkHosted(environment)),
    ...checkRecent(environment, isRunning),
    ...(access === undefined ? [] : [await checkPort(access)]),
    ...proxies,
    ...(await checkService(environment)),
    ...providers,
    ...(live === true && access !== undefined
      ? await checkModelCalls({
          environment,
          access,
          open: createUpstream,
          model,
          agree,
          unreachable,
        })
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

/** Checks the user service of `svc start --at-login`, which names Node and svc by their paths. */
async function checkService(environment: Environment): Promise<readonly Check[]> {
  const unit = await unitPrograms(environment);
  if (unit === undefined) return [];
  const subject = 'Service';
  const gone = unit.programs.find((program) => !existsSync(program));
  if (gone === undefined) {
    return [{ level: 'ok', subject, found: `${unit.file} starts svc at every login` }];
  }
  const found = `${unit.file} starts ${gone}, which does not exist any more`;
  const fix = 'svc start --at-login, which writes the file again';
  return [{ level: 'problem', subject, found, fix }];
}

/** Reports captures that no memory has accepted in time, and recent requests without memory, as `svc status` does. */
function checkRecent(environment: Environment, isRunning: boolean): readonly Check[] {
  try {
    const folder = dataFolder(environment);
    const now = Date.now();
    const level = 'warning' as const;
    const late = lateCaptures(folder, { now, isRunning });
    return [
      ...late.map((one) => ({ level, subject: 'Captures', ...one })),
      ...recentMemoryTrouble(folder, now).map((one) => ({ level, subject: 'Requests', ...one })),
    ];
  } catch (error) {
    // checkStore() reports a data folder that cannot be found.
    if (error instanceof FileError) return [];
    throw error;
  }
}
