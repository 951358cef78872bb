import { JSDOM } from 'jsdom'

/**
 * A document for React in Node's own environment, for tests whose server runs in the same process: jsdom's environment replaces
 * classes such as `AbortController`, of which Node's servers need their own. Import it before React.
 */
const { window } = new JSDOM('<!doctype html><body></body>', { pretendToBeVisual: true })
Object.assign(globalThis, { window, document: window.document })

export const { body } = window.document
