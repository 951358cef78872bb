import type { RolldownOptions } from 'rolldown'

/** What package.json names: the public entry points, the command, and the two that `#exchange` chooses from. */
const ENTRIES = [
  'src/index',
  'operators/index',
  'src/webhooks/index',
  'src/state/sqlite',
  'src/service/index',
  'src/cli/main',
  'src/transport/undici-exchange',
  'src/transport/fetch-exchange',
]

/**
 * The JavaScript of the package, beside the declarations that tsc writes. An import of many small files takes Node longer
 * than what they hold. So each entry is one file, and what several entries need is in files that they share: no class and
 * no state of a module is there twice.
 */
export default {
  input: Object.fromEntries(ENTRIES.map((name) => [name, `./${name}.ts`])),
  // All that is imported by name stays an import: dependencies, Node's own modules, `#exchange`, and `rivulet` itself, which
  // the command uses as everybody does. The compiler's own helpers are nobody's dependency.
  external: (id, _importer, isResolved) => !isResolved && !/^(\.|@oxc-project\/runtime\/)/.test(id),
  // As in tsconfig.json.
  transform: { target: 'es2023' },
  output: {
    dir: 'dist',
    entryFileNames: '[name].js',
    chunkFileNames: 'chunks/[name].js',
    codeSplitting: {
      groups: [
        // Without rxjs, which the service and the stores do not need.
        { name: 'protocol', test: /[\\/]src[\\/](protocol|state)[\\/]/, minShareCount: 2 },
        { name: 'operators', test: /[\\/](operators|transport)[\\/]/, minShareCount: 2 },
      ],
    },
    sourcemap: true,
    // The package has the sources as well.
    sourcemapExcludeSources: true,
  },
  logLevel: 'warn',
} satisfies RolldownOptions
