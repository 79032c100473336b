import { join } from 'node:path';
import { readClientFile } from '../../adapters/foreign/client-files.ts';
import { shellQuote } from '../../core/foreign/shell-quote.ts';
import { CliError } from '../cli-error.ts';
import type { OtherClient } from './other-client.ts';

/**
 * Cline's command line takes a base URL from its own file alone, and only for Chat Completions. So
 * `svc run cline` needs the command once that
 * `svc print-config cline` prints.
 */
export const clineClient: OtherClient = {
  name: 'cline',
  title: 'Cline',
  program: 'cline',
  install: 'npm install -g cline',
  dialects: ['openai_chat_completions'],
  needsModel: ['openai_chat_completions'],
  file: 'Cline rewrites its own file at every start, so svc could not restore its bytes.',
  launch({ url, environment }) {
    const text = readClientFile(environment, { variable: '', name: FOLDER }, FILE);
    if (!text.includes(`${url}/`)) {
      throw new CliError(
        'Cline reads the address of the proxy only from its own file, and that file does not name the proxy.',
        'Run once: eval "$(svc print-config cline --model MODEL)"',
      );
    }
    return { args: ['-P', PROVIDER], variables: {} };
  },
  print({ urlWithToken, model }) {
    if (model === undefined) {
      throw new CliError(
        'Cline needs the name of a model of your provider.',
        'svc print-config cline --model MODEL',
      );
    }
    // The token is in the address, and opens model routes only; the client insists on a key of its own.
    const name = shellQuote(model, 'sh');
    return {
      text: `cline auth -p ${PROVIDER} -k svc -b ${urlWithToken}/v1 -m ${name}`,
      notes: [`Run this once, then: cline -P ${PROVIDER}, or svc run cline`],
    };
  },
};

const PROVIDER = 'openai-compatible';
const FOLDER = join('.cline', 'data', 'settings');
const FILE = 'providers.json';
