import type { DialectApi } from '../api.ts';
import { openAiErrorBody } from '../openai-api.ts';

/** OpenAI Chat Completions, which many other providers speak too. */
export const CHAT_API: DialectApi = {
  name: 'openai_chat_completions',
  title: 'OpenAI Chat Completions',
  speakers: 'most gateways and local servers',
  provider: 'openai',
  modelPath: '/v1/chat/completions',
  helperPaths: [],
  baseUrlHasVersion: true,
  defaultAuth: 'bearer',
  callHeaders: {},
  errorBody: openAiErrorBody,
};
