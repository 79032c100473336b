import { headPage, oneReceipt, receiptPage } from '../operations/receipts.ts';
import { type ConsoleCall, type ConsoleReply, findTenant, storeOf } from './console-call.ts';

/** Receipts of a tenant, for its admins: the same as its keys get. */

/** Milliseconds that a question may take. */
const ASK_MS = 10_000;

export async function listRequests(call: ConsoleCall): Promise<ConsoleReply> {
  await findTenant(call);
  const signal = AbortSignal.timeout(ASK_MS);
  const asked = { store: storeOf(call), query: call.query, signal };
  return { status: 200, body: await receiptPage(asked) };
}

export async function getRequest(call: ConsoleCall): Promise<ConsoleReply> {
  const { parameter: receiptId, now } = call;
  const signal = AbortSignal.timeout(ASK_MS);
  return { status: 200, body: await oneReceipt({ store: storeOf(call), receiptId, signal, now }) };
}

export async function listRequestHeads(call: ConsoleCall): Promise<ConsoleReply> {
  await findTenant(call);
  const { tenantId: tenant, query, now, parts } = call;
  const asked = { tenant, store: storeOf(call), query, signer: parts.signer, now };
  return { status: 200, body: await headPage(asked) };
}
