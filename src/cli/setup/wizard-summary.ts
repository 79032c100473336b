import { dataFolder } from '../../adapters/files/data-folder.ts';
import { type Draft } from '../../core/settings/config-draft.ts';
import { readProxySettings } from '../../core/settings/config-proxy.ts';
import {
  type Environment,
  Findings,
  keyEnd,
  namedVariable,
  variableText,
} from '../../core/settings/config-values.ts';
import { isRecord } from '../../core/bytes/json-fields.ts';
import type { ProxySettings } from '../../core/settings/settings.ts';

/** The configuration in a few lines, keys masked. */
export function summaryOf(draft: Draft, environment: Environment): readonly string[] {
  const proxy = storedSettings(draft);
  const upstreams = Array.isArray(draft['upstreams']) ? draft['upstreams'] : [];
  return [
    `  Address    ${proxy.host}:${proxy.port}`,
    `  Memory     ${memoryText(draft['memory'], environment)}`,
    `  Recall     ${proxy.memoryMode}, at most ${proxy.recalledTokensMax} recalled tokens`,
    `  Shortening ${proxy.compressionMode}, from ${proxy.inputBudget} tokens on`,
    ...(proxy.cacheTtl === 'auto'
      ? ['  Cache      an hour for tools and system prompt after a pause']
      : []),
    ...(proxy.boundShortening === 'provider'
      ? ['  Bound      the provider clears old tool outputs of bound conversations']
      : []),
    ...upstreams.map((upstream: unknown) => `  Provider   ${upstreamText(upstream, environment)}`),
    ...(upstreams.length === 0 ? ['  Provider   none yet'] : []),
  ];
}

/** As the file has them: variables of this shell say nothing about it. */
export function storedSettings(draft: Draft): ProxySettings {
  return readProxySettings(draft['proxy'], { environment: {}, flags: {} }, new Findings());
}

function memoryText(memory: unknown, environment: Environment): string {
  if (!isRecord(memory) || memory['kind'] !== 'hosted') {
    return `one SQLite file on this machine, in ${dataFolder(environment)}`;
  }
  const key = maskedKey(memory['serviceKey'], environment);
  return `with the service ${hostOf(memory['baseUrl'])}, key ${key}`;
}

function upstreamText(upstream: unknown, environment: Environment): string {
  if (!isRecord(upstream)) return '?';
  const { name, apiStyle, baseUrl, providerKey, auth } = upstream;
  return [name, apiStyle, hostOf(baseUrl), credentialOf(auth)].map(String).join(', ');

  function credentialOf(kind: unknown): string {
    if (kind === 'none') return 'no key';
    if (kind === 'client') return 'the login of its client';
    return `key ${maskedKey(providerKey, environment)}`;
  }
}

function hostOf(baseUrl: unknown): string {
  return typeof baseUrl === 'string' && URL.canParse(baseUrl) ? new URL(baseUrl).host : '?';
}

export function maskedKey(value: unknown, environment: Environment): string {
  const name = namedVariable(value);
  if (name !== undefined)
    return `in ${variableText(name)}${environment[name] ? '' : ' (not set here)'}`;
  return typeof value === 'string' && value !== '' ? keyEnd(value) : 'missing';
}
