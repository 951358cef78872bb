import { readFileSync } from 'node:fs'
import type { RolldownOptions } from 'rolldown'
import { dashboardPage } from './build/dashboard-page.ts'
import { minified } from './build/minified.ts'
import { publicDeclarations } from './build/public-declarations.ts'
import { thirdPartyNotices } from './build/third-party-notices.ts'
import { withoutValidator } from './build/without-validator.ts'
import { bundlePage } from './src/dashboard/source-page.ts'

const { dependencies, peerDependencies, exports } = JSON.parse(readFileSync('package.json', 'utf8'))

/** What users have beside the package, and the package itself: the command imports it by name, as its users do. */
const INSTALLED = ['rivulet', ...Object.keys({ ...dependencies, ...peerDependencies })]

/** What package.json names: the public entry points, the command, those that `#exchange`, `#hmac` and `#dashboard-page` choose from, and the file of the service's thread. */
const ENTRIES = [
  'src/index',
  'operators/index',
  'src/streams/index',
  'src/webhooks/index',
  'src/log/index',
  'src/transport/index',
  'src/log/sqlite/index',
  'src/log/store/index',
  'src/log/nats/index',
  'src/otel/index',
  'src/rules/index',
  'src/gateway/index',
  'src/service/index',
  'src/service/isolated/worker',
  'src/dashboard/index',
  'src/cli/main',
  'src/transport/undici-exchange',
  'src/transport/fetch-exchange',
  'src/webhooks/node-hmac',
  'src/webhooks/web-hmac',
  'src/dashboard/built-page',
]

/** The entries for browsers, which share no file with the others: with no code of Node and no rxjs. */
const BROWSER_ENTRIES = ['src/live/index', 'src/react/index']

/** The declarations that package.json names, as paths within `dist`. */
const DECLARATIONS = Object.values<{ readonly types?: string }>(exports).flatMap(
  ({ types }) => types?.replace('./dist/', '') ?? [],
)

/** The chunks of bundled packages. They are not debugged there, so they are minified. */
const SERVICE_PACKAGES = 'service-packages'
const RULES_PACKAGES = 'rules-packages'
const MCP_PACKAGES = 'mcp-packages'
/** Of the service, the rules and the tools. Each of these loads it without the others' packages. */
const SHARED_PACKAGES = 'schema-packages'

/** The command has packages of its own, and starts without the service's. */
const COMMAND_PACKAGES =
  /node_modules[\\/](commander|cli-progress|string-width|strip-ansi|ansi-regex|emoji-regex|is-fullwidth-code-point)[\\/]/

function isServicePackage(id: string): boolean {
  return /[\\/]node_modules[\\/]/.test(id) && !COMMAND_PACKAGES.test(id)
}

const external = (id: string) =>
  id.startsWith('#') || INSTALLED.some((name) => id === name || id.startsWith(`${name}/`))

/** The page of the dashboard, with all that it needs: it is no module of an application. */
const page = bundlePage()

/** As in tsconfig.json. */
const transform = { target: 'es2023' }

/**
 * The JavaScript of the package, beside the declarations that tsc writes. An import of many small files takes Node longer
 * than what they hold. So each entry is one file, and what several entries need is in files that they share: no class and
 * no state of a module is there twice. The packages that only the service, the rules and the command need are in their files too, so
 * that users of the client do not install them.
 */
const everything: RolldownOptions = {
  input: inputOf(ENTRIES),
  platform: 'node',
  external,
  transform,
  output: {
    dir: 'dist',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    // The declarations have the doc comments.
    comments: { jsdoc: false },
    codeSplitting: {
      groups: [
        // Without rxjs, which the service does not need.
        { name: 'protocol', test: /[\\/]src[\\/]protocol[\\/]/, minShareCount: 2 },
        { name: 'operators', test: /[\\/](operators|transport)[\\/]/, minShareCount: 2 },
        { name: 'http', test: /[\\/]src[\\/]http[\\/]/, minShareCount: 2 },
        { name: RULES_PACKAGES, test: /[\\/]node_modules[\\/](@bufbuild|tldts|tldts-core)[\\/]/ },
        { name: MCP_PACKAGES, test: /[\\/]node_modules[\\/]@modelcontextprotocol[\\/]/ },
        { name: SHARED_PACKAGES, test: /[\\/]node_modules[\\/](yaml|zod)[\\/]/ },
        { name: SERVICE_PACKAGES, test: isServicePackage },
      ],
    },
  },
  plugins: [
    withoutValidator,
    publicDeclarations(DECLARATIONS),
    dashboardPage(page),
    thirdPartyNotices(page),
    minified([SERVICE_PACKAGES, RULES_PACKAGES, MCP_PACKAGES, SHARED_PACKAGES]),
  ],
  logLevel: 'warn',
}

/** Not minified, since the bundler of an application does that. */
const forBrowsers: RolldownOptions = {
  input: inputOf(BROWSER_ENTRIES),
  platform: 'browser',
  external,
  transform,
  output: {
    dir: 'dist',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/browser-[name].js',
    comments: { jsdoc: false },
  },
  logLevel: 'warn',
}

export default [everything, forBrowsers]

function inputOf(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(entries.map((name) => [name, `./${name}.ts`]))
}
