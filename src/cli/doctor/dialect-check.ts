import { apiOf } from '../../core/dialects/apis.ts';
import type { UpstreamSettings } from '../../core/settings/settings.ts';
import { exchange, failureOf, type OpenUpstream } from './key-check.ts';

/**
 * Whether a provider speaks its dialect there: svc sends an empty object to the path of model
 * calls. Every provider refuses it before a model runs, so it costs nothing; the kind of refusal
 * shows whether that path exists.
 */
export interface DialectCheck {
  /** 'foreign': the path is not there. */
  readonly state: 'speaks' | 'foreign' | 'unknown';
  /** A clause without a full stop. */
  readonly found: string;
}

export async function checkDialect(
  settings: UpstreamSettings,
  open: OpenUpstream,
): Promise<DialectCheck> {
  const { apiStyle } = settings;
  const question = {
    settings,
    method: 'POST',
    target: apiOf(apiStyle).modelPath,
    body: '{}',
  } as const;
  try {
    const { status, body } = await exchange(question, open);
    // Some say 404 for the model that the request does not name.
    const isAboutModel = status === 404 && /"error"/.test(body) && /\bmodel\b/i.test(body);
    if (status < 300 || status === 400 || status === 422 || isAboutModel) {
      return { state: 'speaks', found: `it serves ${apiStyle}` };
    }
    if (status === 404 || status === 405) {
      return {
        state: 'foreign',
        found: `it does not serve ${apiStyle} at this address (${status})`,
      };
    }
    return { state: 'unknown', found: `svc cannot tell whether it serves ${apiStyle} (${status})` };
  } catch (error) {
    return { state: 'unknown', found: failureOf(error, 'the provider').found };
  }
}
