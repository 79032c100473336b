import { jsonFault } from '../../adapters/files/json-text.ts';
import {
  CLAUDE_FOLDER,
  CLAUDE_STATE,
  CODEX_FOLDER,
  hasLogin,
  isInstalled,
  readClientFile,
} from '../../adapters/foreign/client-files.ts';
import { parseToml } from '../../adapters/foreign/toml-text.ts';
import { LOGINS } from '../../core/http/logins.ts';
import type { Draft } from '../../core/settings/config-draft.ts';
import { LOGIN_STYLES } from '../../core/settings/config-upstreams.ts';
import type { Access } from '../../core/settings/config-schema.ts';
import type { Environment } from '../../core/settings/config-values.ts';
import { asList, asRecord, asText, parseJson } from '../../core/bytes/json-fields.ts';
import { urlOf } from '../listing.ts';
import { isAt, proxyVariables, sparesLoopback, TOOL_SEARCH } from '../clients/client-variables.ts';
import { takesLogin } from '../clients/launch.ts';
import { startsProxy } from '../clients/own-command.ts';
import type { Check } from './checks.ts';

/** Checks Claude Code and Codex: whether they are installed, whether they use the proxy, and what prevents it. */

interface ClientsQuestion {
  readonly environment: Environment;
  readonly access: Access | undefined;
  readonly upstreams: readonly Draft[];
  /** True if a proxy of this configuration runs. */
  readonly isRunning: boolean;
  /** The names of the clients that get memory through hooks. */
  readonly hooked: readonly string[];
}

export function checkClients(question: ClientsQuestion): readonly Check[] {
  return [
    ...checkNetworkProxy(question.environment),
    ...checkClaude(question),
    ...checkCodex(question),
    ...checkLogins(question),
  ];
}

/** Checks whether a client's login or svc's key pays for its requests. It only looks whether a login exists. */
function checkLogins({ environment, upstreams, hooked }: ClientsQuestion): readonly Check[] {
  return Object.values(LOGINS).flatMap(({ login, client }): readonly Check[] => {
    const upstream = upstreams.find((one) => one['apiStyle'] === LOGIN_STYLES[login]);
    const isPresent = hasLogin(environment, login);
    if (takesLogin(upstream)) {
      if (isPresent) return [{ level: 'ok', subject: client, found: 'it uses its login' }];
      const fix = `log in with ${client} itself`;
      return [{ level: 'warning', subject: client, found: 'no login was found', fix }];
    }
    if (!isPresent || (upstream === undefined && hooked.includes(login))) return [];
    const found =
      upstream === undefined
        ? 'has a subscription login, and svc has no provider for it'
        : 'has a subscription login, but svc has a key, so the provider bills the key per token';
    const fix = `to use the login: svc setup --login ${login} (see: svc help logins)`;
    return [{ level: 'warning', subject: client, found, fix }];
  });
}

function checkNetworkProxy(environment: Environment): readonly Check[] {
  const proxies = proxyVariables(environment);
  if (proxies.length === 0 || sparesLoopback(environment)) return [];
  return [
    {
      level: 'warning',
      subject: 'Clients',
      found: `${proxies.join(', ')} sends even requests for 127.0.0.1 to that proxy, with the token and the prompts`,
      fix: 'export NO_PROXY=127.0.0.1,localhost',
    },
  ];
}

const CLAUDE_FIX = 'eval "$(svc print-config claude)", or start it with: svc run claude';
const CLAUDE_WRITE = 'svc connect claude';
const CODEX_WRITE = 'svc connect codex';

function checkClaude(question: ClientsQuestion): readonly Check[] {
  const { environment, access, upstreams, isRunning, hooked } = question;
  const subject = 'Claude Code';
  const stated = environment['ANTHROPIC_BASE_URL'] ?? '';
  const text = readClientFile(environment, CLAUDE_FOLDER, 'settings.json');
  const settings = asRecord(parseJson(text));
  const variables = asRecord(settings['env']);
  const kept = asText(variables['ANTHROPIC_BASE_URL']);
  const checks: Check[] = [...checkSettingsText(text, environment)];
  for (const [place, base, fix] of [
    ['ANTHROPIC_BASE_URL', stated, CLAUDE_FIX],
    ['ANTHROPIC_BASE_URL in its settings.json', kept, CLAUDE_WRITE],
  ] as const) {
    if (/\/v1\/?$/.test(base)) {
      const found = `${place} ends in /v1, and the client adds /v1 again`;
      checks.push({ level: 'warning', subject, found, fix });
    }
  }
  if (isRejected(environment, access)) {
    const found = 'it remembers that you refused the local token as a key';
    const fix = 'Start it with svc run claude, which uses a variable without this question.';
    checks.push({ level: 'warning', subject, found, fix });
  }
  if (kept !== '' && !pointsHere(kept, access)) {
    // Claude Code prefers this file to the variables that svc run sets.
    const found = 'its settings.json names another address, which overrides svc run';
    checks.push({ level: 'warning', subject, found, fix: CLAUDE_WRITE });
  }
  if (pointsHere(kept, access) && !isRunning && !startsByItself(settings)) {
    checks.push(stranded(subject, 'claude'));
  }
  const isHere = pointsHere(stated, access) || pointsHere(kept, access);
  const upstream = upstreams.find((one) => one['apiStyle'] === LOGIN_STYLES.claude);
  const isSearching = TOOL_SEARCH in variables || TOOL_SEARCH in environment;
  if (isHere && isAt('api.anthropic.com', upstream) && !isSearching) {
    const found = `${TOOL_SEARCH} is not set, so it puts every MCP tool into each prompt, and a server that connects late costs it the prompt cache and its thinking`;
    const fix = pointsHere(kept, access) ? CLAUDE_WRITE : `export ${TOOL_SEARCH}=true`;
    checks.push({ level: 'warning', subject, found, fix });
  }
  if (checks.length > 0 || !isInstalled(environment, 'claude')) return checks;
  if (!isHere && hooked.includes('claude')) return [];
  const found = isHere
    ? usesProxy(isRunning || !startsByItself(settings))
    : runsThrough('claude', upstreams);
  return [{ level: 'ok', subject, found }];
}

function checkCodex(question: ClientsQuestion): readonly Check[] {
  const { environment, access, upstreams, isRunning, hooked } = question;
  const subject = 'Codex';
  const toml = parseToml(readClientFile(environment, CODEX_FOLDER, 'config.toml'));
  if (toml === undefined) {
    const fix = `Correct ${environment[CODEX_FOLDER.variable] || '~/.codex'}/config.toml`;
    return [{ level: 'warning', subject, found: 'its config.toml is not valid TOML', fix }];
  }
  const checks: Check[] = [];
  const isTwice =
    'svc' in asRecord(toml['profiles']) &&
    readClientFile(environment, CODEX_FOLDER, 'svc.config.toml') !== '';
  if (isTwice) {
    // Codex refuses this table only when the profile svc is used (github.com/openai/codex/pull/24059, May 2026).
    const found = 'its config.toml has [profiles.svc], so codex -p svc fails';
    const fix = 'Remove that table: svc.config.toml is the profile';
    checks.push({ level: 'warning', subject, found, fix });
  }
  const { svc } = asRecord(toml['model_providers']);
  const provider = asRecord(svc);
  const base = asText(provider['base_url']);
  if (svc !== undefined && !pointsHere(base, access)) {
    const found = '[model_providers.svc] in its config.toml has another address than svc';
    checks.push({ level: 'warning', subject, found, fix: CODEX_WRITE });
  }
  if (svc !== undefined && !base.endsWith('/v1')) {
    const found = 'base_url in [model_providers.svc] does not end in /v1';
    checks.push({ level: 'warning', subject, found, fix: CODEX_WRITE });
  }
  const isChosen = svc !== undefined && toml['model_provider'] === 'svc';
  const { command, args } = asRecord(provider['auth']);
  const isStarting = startsProxy([command, ...asList(args)].join(' '));
  if (isChosen && checks.length === 0 && !isRunning && !isStarting) {
    checks.push(stranded(subject, 'codex'));
  }
  if (checks.length > 0 || !isInstalled(environment, 'codex')) return checks;
  if (!isChosen && hooked.includes('codex')) return [];
  const found = isChosen ? usesProxy(isRunning) : runsThrough('codex', upstreams);
  return [{ level: 'ok', subject, found }];
}

/** Returns words about an installed client that does not use the proxy: whether `svc run` can start it. */
function runsThrough(client: 'claude' | 'codex', upstreams: readonly Draft[]): string {
  const isServed = upstreams.some((one) => one['apiStyle'] === LOGIN_STYLES[client]);
  return isServed
    ? `installed; svc run ${client} starts it through svc`
    : 'installed; no provider of svc serves its API';
}

function usesProxy(isRunning: boolean): string {
  return `installed, and uses this proxy${isRunning ? '' : ', which it starts itself'}`;
}

/** Returns a warning about a client that cannot work: its settings name the proxy, which does not run. */
function stranded(subject: string, client: 'claude' | 'codex'): Check {
  const found = 'its settings name this proxy, and no proxy runs: it cannot reach a model';
  const fix = `svc start --detach, or permanently: svc start --at-login; or svc disconnect ${client}`;
  return { level: 'warning', subject, found, fix };
}

/** Says whether Claude Code's settings start the proxy: by the command for the key, or by a hook of new sessions. */
function startsByItself(settings: Readonly<Record<string, unknown>>): boolean {
  const groups = asList(asRecord(settings['hooks'])['SessionStart']);
  const hooks = groups.flatMap((group) => asList(asRecord(group)['hooks']));
  const commands = [settings['apiKeyHelper'], ...hooks.map((hook) => asRecord(hook)['command'])];
  return commands.some((one) => typeof one === 'string' && startsProxy(one));
}

function pointsHere(base: string, access: Access | undefined): boolean {
  if (access === undefined || !URL.canParse(base)) return false;
  const { host, protocol } = new URL(base);
  const own = [new URL(urlOf(access)).host, `localhost:${access.port}`];
  return protocol === 'http:' && own.includes(host);
}

/** Checks that Claude Code's settings are plain JSON. Otherwise Claude Code ignores the whole file. */
function checkSettingsText(text: string, environment: Environment): readonly Check[] {
  const fault = text.trim() === '' ? undefined : jsonFault(text);
  if (fault === undefined) return [];
  const isRelaxed = fault === 'relaxed';
  const has = isRelaxed ? 'has comments or trailing commas' : 'is not valid JSON';
  const path = `${environment[CLAUDE_FOLDER.variable] || '~/.claude'}/settings.json`;
  const found = `its settings.json ${has}: it refuses the whole file, and none of its settings apply`;
  const fix = isRelaxed ? `Remove them from ${path}` : `Correct ${path}`;
  return [{ level: 'warning', subject: 'Claude Code', found, fix }];
}

/**
 * Says whether the user told Claude Code, which lists the last 20 characters of such keys, not to use the local token.
 */
function isRejected(environment: Environment, access: Access | undefined): boolean {
  const state = parseJson(readClientFile(environment, CLAUDE_STATE, '.claude.json'));
  const { rejected } = asRecord(asRecord(state)['customApiKeyResponses']);
  const end = access?.localToken.slice(-20) ?? '';
  return end !== '' && asList(rejected).includes(end);
}
