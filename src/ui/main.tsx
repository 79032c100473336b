import { render } from 'preact';
import './app.css';
import { App } from './app.tsx';
import { startSession } from './client/session.ts';

/** Entry point of the page of `svc ui`. */

const root = document.getElementById('app');
if (root !== null) {
  render(<App />, root);
  void startSession();
}
