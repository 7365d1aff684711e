"""JavaScript and TypeScript, and the runners of Node.js."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from redstart.core.shell import Environment
from redstart.toolkit.languages.protocol import Language, Place, Read, ReportNames, SuiteRunner

if TYPE_CHECKING:
    from redstart.toolkit.honesty.controls.alteration import Alterer
    from redstart.toolkit.honesty.examine import Green
    from redstart.toolkit.honesty.mutant import Mutant
    from redstart.toolkit.honesty.neutral_surroundings import Driver
    from redstart.toolkit.patching.policy import Protection
    from redstart.toolkit.suites.view import View

_TEST = re.compile(
    r"(?:^|/)(?:[^/]*[.\-_])?(?:tests?|specs?|e2e|cy|bench)\.[cm]?[jt]sx?(?:/|$)"
    r"|(?:^|/)test[.\-_][^/]*\.[cm]?[jt]sx?(?:/|$)"
    r"|(?:^|/)(?:__tests__|__mocks__|__fixtures__|specs?|cypress|e2e)/(?:.*/)?[^/]+\.(?:[cm]?[jt]sx?|json|snap)(?:/|$)"
    r"|(?:^|/)tests?/(?:.*/)?[^/]+\.[cm]?[jt]sx?$",
    re.IGNORECASE,
)
_CONFIGURATION = re.compile(
    r"(?:^|/)(?:package(?:-lock)?\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-(?:lock|workspace)\.yaml|\.pnpmfile\.c?js"
    r"|(?:jest|vitest|vite|ava|karma|playwright|cypress|babel|wdio|web-test-runner|esbuild|rollup|webpack|swc)"
    r"\.?(?:[\w-]*\.)?(?:config|workspace|setup|preset|conf)(?:[.-][\w.-]+)?\.(?:[cm]?[jt]s|json)"
    r"|(?:setup-?tests?|test-?setup|jest-?setup|vitest-?setup|setup-?(?:jest|vitest|mocha))\.[cm]?[jt]sx?"
    r"|\.(?:mocharc|babelrc|swcrc|nycrc|c8rc|taprc|jestrc|node-version|nvmrc|yarnrc)(?:\.[\w.]+)?|mocha\.opts"
    r"|(?:ts|js)config(?:\.[\w.-]+)?\.json)(?:/|$)"
)
"""What the runners of Node.js are, where they find tests, and how the code becomes what they run."""

_TEST_CALL = re.compile(rb"^[ \t]*(?:it|test)(?:\.\w+)*[ \t]*\(", re.MULTILINE)
_TITLE = re.compile(rb"""\b(?:it|test|describe|suite|specify|context)(?:\.\w+)*\(\s*(["'`])(.+?)\1""")


class Node(Language):
    name = "JavaScript"
    suffixes = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".mts", ".cts")
    case_mark = re.compile(r" \[#\d+\]$")
    reads_code = deepest_first = True
    runners = ("node", "jest", "vitest", "mocha")
    program = "node"
    program_name = "Node.js"
    programs = ("node", "npm", "npx", "yarn", "pnpm", "bun", "deno", "jest", "vitest", "mocha", "tap", "ava")

    def is_test_path(self, path: str) -> bool:
        return bool(_TEST.search(path))

    def protection(self, path: str) -> Protection | None:
        from redstart.toolkit.patching.policy import Protection

        return Protection.configuration if _CONFIGURATION.search(path) else None

    def suite_in(self, folder: str, paths: Sequence[str], read: Read) -> Place | None:
        from redstart.toolkit.languages.node.detect import suite_in

        return suite_in(folder, paths, read)

    def suites_of(self, paths: Sequence[str], read: Read) -> tuple[Place, ...]:
        from redstart.toolkit.languages.node.detect import suites_of

        return suites_of(paths, read)

    def started_by(self, folder: str, paths: Sequence[str], read: Read, words: Sequence[str]) -> Place | None:
        from redstart.toolkit.languages.node.detect import named_suite

        return named_suite(folder, paths, read, words)

    def environment(self, own: Environment, folder: str, environ: Mapping[str, str]) -> Environment:
        from redstart.toolkit.languages.node.environment import with_node

        return with_node(own, folder, environ)

    def count_tests(self, data: bytes) -> int:
        return len(_TEST_CALL.findall(data))

    @property
    def runner(self) -> SuiteRunner:
        from redstart.toolkit.languages.node.runners import NodeRunner

        return NodeRunner()

    @property
    def alterer(self) -> Alterer:
        from redstart.toolkit.languages.node.alterer import JavaScriptAlterer

        return JavaScriptAlterer()

    def neutral_driver(self, green: Green, view: View) -> Driver | None:
        from redstart.toolkit.languages.node.neutral import NodeDriver, calls_node

        return NodeDriver(green, view) if calls_node(green.suite) else None

    def mutants(self, path: str, text: bytes) -> list[Mutant]:
        from redstart.toolkit.languages.node.mutants import node_mutants

        return node_mutants(path, text)

    def report_names(self, path: str, data: bytes) -> ReportNames:
        return ReportNames(endings=tuple(title.decode(errors="replace") for _, title in _TITLE.findall(data)))


LANGUAGE = Node()
