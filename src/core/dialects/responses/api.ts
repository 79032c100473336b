import type { DialectApi } from '../api.ts';
import { openAiErrorBody } from '../openai-api.ts';

/** OpenAI Responses over HTTP. */
export const RESPONSES_API: DialectApi = {
  name: 'openai_responses',
  title: 'OpenAI Responses',
  speakers: 'Codex speaks it',
  provider: 'openai',
  modelPath: '/v1/responses',
  helperPaths: ['/v1/responses/compact', '/v1/responses/input_tokens'],
  baseUrlHasVersion: true,
  defaultAuth: 'bearer',
  callHeaders: {},
  errorBody: openAiErrorBody,
};
