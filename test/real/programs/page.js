// @ts-nocheck -- It runs as it stands, where the types of this repository are not.
// What a page bundles: its own server stands before the service and has the key.
import { pipeline } from './pipeline.js'

globalThis.report = pipeline({ baseUrl: '/research', apiKey: null })
