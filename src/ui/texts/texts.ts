import { CLOSED, FAILURES, FRAME, STATES, VIEWS } from './frame.ts';
import { HEALTH } from './health.ts';
import { MEMORY } from './memory.ts';
import { NOW } from './now.ts';
import { REQUEST, REQUESTS } from './request.ts';
import { SAVINGS } from './savings.ts';

/** All texts of the page in one place. Plain sentences; a headline answers the view's question. */

export const TEXTS = {
  views: VIEWS,
  frame: FRAME,
  closed: CLOSED,
  states: STATES,
  failures: FAILURES,
  now: NOW,
  request: REQUEST,
  requests: REQUESTS,
  memory: MEMORY,
  savings: SAVINGS,
  health: HEALTH,
};
