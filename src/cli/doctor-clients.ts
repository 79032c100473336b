import { isInstalled, readHomeFile } from '../adapters/client-files.ts';
import type { Access } from '../core/config-schema.ts';
import { type Environment, isRecord } from '../core/config-values.ts';
import { urlOf } from './addresses.ts';
import type { Check } from './doctor-checks.ts';
import { proxyVariables, sparesLoopback } from './proxy-variables.ts';

/** Doctor's look at the clients: which are here, whether they point at the proxy, and what hinders. */

export function checkClients(
  environment: Environment,
  access: Access | undefined,
): readonly Check[] {
  return [
    ...checkNetworkProxy(environment),
    ...checkClaude(environment, access),
    ...checkCodex(environment, access),
  ];
}

function checkNetworkProxy(environment: Environment): readonly Check[] {
  const proxies = proxyVariables(environment);
  if (proxies.length === 0 || sparesLoopback(environment)) return [];
  return [
    {
      level: 'warning',
      subject: 'Clients',
      found: `${proxies.join(', ')} sends even requests to 127.0.0.1 to that proxy, token and prompts included`,
      fix: 'export NO_PROXY=127.0.0.1,localhost',
    },
  ];
}

const CLAUDE_FIX = 'eval "$(svc print-config claude)", or start it with: svc run claude';

function checkClaude(environment: Environment, access: Access | undefined): readonly Check[] {
  const subject = 'Claude Code';
  const stated = environment['ANTHROPIC_BASE_URL'] ?? '';
  const settings = claudeSettings(environment);
  const inFile = settings['ANTHROPIC_BASE_URL'];
  const kept = typeof inFile === 'string' ? inFile : '';
  const checks: Check[] = [];
  for (const [place, base] of [
    ['ANTHROPIC_BASE_URL', stated],
    ['ANTHROPIC_BASE_URL in ~/.claude/settings.json', kept],
  ] as const) {
    if (/\/v1\/?$/.test(base)) {
      const found = `${place} ends in /v1, and the client adds another one`;
      checks.push({ level: 'warning', subject, found, fix: CLAUDE_FIX });
    }
  }
  if (isRejected(environment, access)) {
    const found = 'it was told once not to use the local token as a key, and remembers that';
    const fix = 'Start it with: svc run claude, which uses a variable that it does not ask about.';
    checks.push({ level: 'warning', subject, found, fix });
  }
  if (kept !== '' && !pointsHere(kept, access)) {
    // Its own file beats the environment, and so what svc run sets.
    const found = '~/.claude/settings.json sends it to another address, whatever svc run says';
    const fix =
      'Take ANTHROPIC_BASE_URL out of that file, or put in what this prints: svc print-config claude --json';
    checks.push({ level: 'warning', subject, found, fix });
  }
  if (checks.length > 0 || !isInstalled(environment, 'claude')) return checks;
  const isHere = pointsHere(stated, access) || pointsHere(kept, access);
  const found = isHere
    ? 'installed, and points here'
    : 'installed; svc run claude starts it through svc';
  return [{ level: 'ok', subject, found }];
}

function checkCodex(environment: Environment, access: Access | undefined): readonly Check[] {
  const subject = 'Codex';
  const toml = readHomeFile(environment, '.codex', 'config.toml');
  const checks: Check[] = [];
  if (/^\s*\[profiles[.\]]/m.test(toml)) {
    const found = '~/.codex/config.toml has [profiles]: with it codex -p svc is an error';
    const fix = 'Move each profile into a file of its own, ~/.codex/NAME.config.toml';
    checks.push({ level: 'warning', subject, found, fix });
  }
  const base = providerBase(toml);
  if (base !== undefined && !pointsHere(base, access)) {
    const found = '[model_providers.svc] in ~/.codex/config.toml has another address than svc';
    checks.push({
      level: 'warning',
      subject,
      found,
      fix: 'Put in what this prints: svc print-config codex',
    });
  }
  if (base !== undefined && !base.endsWith('/v1')) {
    const found = 'base_url in [model_providers.svc] does not end in /v1';
    checks.push({
      level: 'warning',
      subject,
      found,
      fix: 'Put in what this prints: svc print-config codex',
    });
  }
  if (checks.length > 0 || !isInstalled(environment, 'codex')) return checks;
  const isChosen = base !== undefined && /^\s*model_provider\s*=\s*["']svc["']/m.test(toml);
  const found = isChosen
    ? 'installed, and points here'
    : 'installed; svc run codex starts it through svc';
  return [{ level: 'ok', subject, found }];
}

/** base_url of the table [model_providers.svc], as print-config writes it. */
function providerBase(toml: string): string | undefined {
  const table = /^\s*\[model_providers\.svc\]\s*$([^[]*)/m.exec(toml)?.[1];
  return table === undefined
    ? undefined
    : (/^\s*base_url\s*=\s*["']([^"'\n]*)["']/m.exec(table)?.[1] ?? '');
}

function pointsHere(base: string, access: Access | undefined): boolean {
  if (access === undefined || !URL.canParse(base)) return false;
  const { host, protocol } = new URL(base);
  const own = [new URL(urlOf(access)).host, `localhost:${access.port}`];
  return protocol === 'http:' && own.includes(host);
}

function claudeSettings(environment: Environment): Readonly<Record<string, unknown>> {
  const settings = parsed(readHomeFile(environment, '.claude', 'settings.json'));
  const variables = isRecord(settings) ? settings['env'] : undefined;
  return isRecord(variables) ? variables : {};
}

/** The client keeps the last 20 characters of keys that a person said yes or no to. */
function isRejected(environment: Environment, access: Access | undefined): boolean {
  const state = parsed(readHomeFile(environment, '.claude.json'));
  const answers = isRecord(state) ? state['customApiKeyResponses'] : undefined;
  const rejected = isRecord(answers) ? answers['rejected'] : undefined;
  const end = access?.localToken.slice(-20) ?? '';
  return end !== '' && Array.isArray(rejected) && rejected.includes(end);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
