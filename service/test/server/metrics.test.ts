import { request } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { Metrics, startMetrics } from '../../src/server/metrics.ts';
import { tempFolder } from '../../../test/support/cli.ts';
import { callService } from '../support/memory-service.ts';
import { initService, makeServiceKey, runService } from '../support/service-process.ts';

const ROW = {
  at: 0,
  requestId: 'req_CANARY',
  operation: 'recall',
  method: 'POST',
  status: 200,
  code: undefined,
  keyId: 'CANARYkeyid0',
  bytesIn: 1,
  bytesOut: 1,
  ms: 30,
};

function get(
  port: number,
  path: string,
  method = 'GET',
): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, path, method, agent: false }, (answer) => {
      let text = '';
      answer.setEncoding('utf8');
      answer.on('data', (part: string) => (text += part));
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }));
    });
    asked.on('error', reject);
    asked.end();
  });
}

test('calls are counted by operation, status and code, with their times, and name nobody', async () => {
  const metrics = new Metrics([{ name: 'svc_x', help: 'A gauge.', read: () => 7 }]);
  for (const ms of [3, 30, 400_000]) metrics.count({ ...ROW, ms });
  metrics.count({ ...ROW, operation: undefined, status: 429, code: 'RATE_LIMIT_EXCEEDED' });
  const { port, stop } = await startMetrics(metrics, { host: '127.0.0.1', port: 0 });
  onTestFinished(stop);
  const { status, text } = await get(port, '/metrics');
  expect(status).toBe(200);
  const lines = text.split('\n');
  expect(lines).toContain('svc_calls_total{operation="recall",status="200",code=""} 3');
  expect(lines).toContain(
    'svc_calls_total{operation="none",status="429",code="RATE_LIMIT_EXCEEDED"} 1',
  );
  expect(lines).toContain('svc_call_seconds_bucket{operation="recall",le="0.025"} 1');
  expect(lines).toContain('svc_call_seconds_bucket{operation="recall",le="0.1"} 2');
  expect(lines).toContain('svc_call_seconds_bucket{operation="recall",le="300"} 2');
  expect(lines).toContain('svc_call_seconds_bucket{operation="recall",le="+Inf"} 3');
  expect(lines).toContain('svc_x 7');
  expect(text).not.toContain('CANARY');
  // Every line is a comment or a sample.
  for (const line of lines.slice(0, -1)) {
    expect(line).toMatch(/^(?:# (?:HELP|TYPE) \w+ .+|\w+(?:\{[^{}]+\})? [\d.e+-]+)$/);
  }
  expect((await get(port, '/')).status).toBe(404);
  expect((await get(port, '/metrics', 'POST')).status).toBe(405);
});

test('a service has its metrics on an address of their own, and nowhere else', async () => {
  const home = tempFolder();
  await initService(home, '--metrics', '127.0.0.1:0');
  const key = await makeServiceKey(home);
  const service = await runService(home, '--quiet');
  const { metricsPort } = JSON.parse(service.stdout()) as { metricsPort: number };
  await callService(service.url, '/v1/svc/whoami', { key });
  const { text } = await get(metricsPort, '/metrics');
  expect(text).toContain('svc_calls_total{operation="whoami",status="200",code=""} 1');
  expect(text).toContain('svc_receipts_waiting 0');
  expect(text).toContain('svc_receipts_journal_ready 1');
  expect(text).not.toContain(key.split('_')[2]);
  expect((await callService(service.url, '/metrics', { key })).status).toBe(404);
  expect(await service.end('SIGTERM')).toBe(0);
}, 240_000);
