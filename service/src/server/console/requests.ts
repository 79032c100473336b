import { asRecord } from '../../../../src/core/bytes/json-fields.ts';
import { headPage, oneReceipt, receiptPage } from '../operations/receipts.ts';
import {
  command,
  type ConsoleCall,
  type ConsoleOperation,
  type ConsoleReply,
  limitOption,
  option,
  reads,
  storeOf,
  timeOptions,
} from './operation.ts';

/** Receipts of a tenant, for its admins: the same as its keys get. */

export const requestOperations: readonly ConsoleOperation[] = [
  reads(
    { name: 'listRequests', route: 'GET requests', role: 'viewer', ofTenant: true },
    listRequests,
    [
      command('receipts list', 'List receipts, newest first', {
        options: [
          ...timeOptions('from', 'to'),
          option('--status <status>', 'such as completed, rejected, unknown', 'status'),
          option('--model <name>', 'the requested model', 'model'),
          option('--key <id>', 'the id of a key', 'api_key_id'),
          option('--provider <id>', 'prov_…', 'provider_id'),
          limitOption('how many', 20),
        ],
        examples: [
          'receipts list --limit 50',
          'receipts list --status upstream_error --from 2026-11-20',
        ],
        list: {
          columns: [
            'receipt_id',
            ({ created_at: at }, { time }) => time(at),
            ({ status, http_status: http }, { line }) => line([status, http]),
            ({ model_requested: model }, { line }) => line(model) || '-',
            ({ forwarded_input_tokens: tokens }, { line }) => `${line(tokens)} in`,
            ({ output_tokens: tokens }, { line }) => `${line(tokens) || '?'} out`,
            ({ latency_ms: ms }, { line }) => `${line(asRecord(ms)['total'])} ms`,
          ],
          left: 4,
        },
      }),
    ],
  ),
  reads({ name: 'getRequest', route: 'GET requests/*', role: 'viewer' }, getRequest, [
    command('receipts get', 'Print one receipt as JSON', {
      argument: {
        flags: '<id>',
        about: 'rcpt_…, from the header x-svc-receipt-id',
        pattern: /^rcpt_[0-9a-z]{26}$/,
        problem: [
          'This is not the id of a receipt.',
          'The id is in the header x-svc-receipt-id of the answer, and in the list.',
        ],
      },
      examples: ['receipts get rcpt_06e8z6k2y8r7v0b4c9d1f5g3hj'],
    }),
  ]),
  reads(
    { name: 'listRequestHeads', route: 'GET requests/heads', role: 'viewer', ofTenant: true },
    listRequestHeads,
    [
      command('receipts export', 'Write receipts, heads and public keys to a new folder', {
        argument: { flags: '<folder>', about: 'the target folder' },
        options: timeOptions('from', 'to'),
        examples: ['receipts export ./november --from 2026-11-01'],
        isSpecial: true,
      }),
    ],
  ),
];

/** Milliseconds that a question may take. */
const ASK_MS = 10_000;

async function listRequests(call: ConsoleCall): Promise<ConsoleReply> {
  const signal = AbortSignal.timeout(ASK_MS);
  const asked = { store: storeOf(call), query: call.query, signal };
  return { status: 200, body: await receiptPage(asked) };
}

async function getRequest(call: ConsoleCall): Promise<ConsoleReply> {
  const { parameter: receiptId, now } = call;
  const signal = AbortSignal.timeout(ASK_MS);
  return { status: 200, body: await oneReceipt({ store: storeOf(call), receiptId, signal, now }) };
}

async function listRequestHeads(call: ConsoleCall): Promise<ConsoleReply> {
  const { tenantId: tenant, query, now, parts } = call;
  const asked = { tenant, store: storeOf(call), query, signer: parts.signer, now };
  return { status: 200, body: await headPage(asked) };
}
