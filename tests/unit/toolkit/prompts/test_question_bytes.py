"""The prompts of a release are measured, so a change of their bytes needs a measurement with it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import redstart.toolkit.prompts

SHA256 = {
    "asked/reproduce.md": "30793bc0dcc0670a8ad4ddd077412f3fbdde154d6be0bac58c38ac27e4424369",
    "audit/plan.md": "53c9eab3e51a832f054fac4dc91656601c20565bb17abef0b0fd312be064db70",
    "audit.md": "7991d5f52ce2ca2dee6342d6b293672ff680d0ee1602a63d056589aec52fe8b8",
    "brief/create.md": "853cb5476d610734d31fb258829e5a895a8fee3fc7c752959ca41f54e211bbbf",
    "brief/patch.md": "73482a6ac65740edb1b313c0431ec78704575e11273ae6635ac6e624168ed99a",
    "brief/tests.md": "8ba3351ec5b8ee8bdf5fb0fc4c2323a707d56152be76918a880b93e52eb971fa",
    "create/patch.md": "75f0e1deb5cd4f974650914bc7dfdbe2a272ebaaa2e29ac956decf43b2150c47",
    "create/plan.md": "c3292c4aa5e7d5d9fc8c40e39f9d9245e229e753fc4fc58237e6ab673e6162c7",
    "forms/block.md": "f88838b0ffc4c653deee83aef66b41aecbbc85aab3fc7e6119a2cea65cba6317",
    "forms/brief_block.md": "ba96e3bb4c072bef0dc3dca391018d65f6041720770302a75bd0228f1d9854d8",
    "forms/brief_code.md": "b4ed0314211ba401ce54bd527cdcdccf9e96db47711ce300af8966deb33295f2",
    "forms/brief_diff.md": "8f3eb8a2fc4d387859397ed2f1a72431c6ff6f74c2635461240cfc48d34982af",
    "forms/brief_json_block.md": "73d13009ac6c48d07b8cd4b7452caf642d277f61e357502eaa61b96d10ca455c",
    "forms/brief_json_whole.md": "9952338976b9c20f5b51a932a4931d9371a158e07be45d81cf24f495ab2a4b88",
    "forms/brief_new.md": "e5eb563cb5d869f0d0e065199f4469d39e3a07bab877b8a5c7e3d6f0c76cb248",
    "forms/brief_tests.md": "2111f68ebc5415202c5e48d97dc7d89969fad6385a5719e793d74946cbbe6a3b",
    "forms/brief_whole.md": "45b716d0cc4d01b536bcff5f6b078cc3e73c291bcde342ed311b5912974a808c",
    "forms/diff.md": "56c438d5fa801c60c0064b36ed241c94cc612d6f32f6e2579069d4ffeca9aeb2",
    "forms/envelope.md": "77517374ddfef474418082a942c2f0b0bcd431ce8ed690f64846c5367fb3823d",
    "forms/json_block.md": "49a4d4781e9adfc3be3d4e7f26cabdafb8cae4fcb02fb91ff1bb23114ab75f7c",
    "forms/json_whole.md": "05b9db84a5087f15a266eb87b301c2d49058b9d60235d70fa4055d652a43f7e7",
    "forms/not_this_code.md": "fe3f70dfa1e770547207154714010ed023aff29c845828066a0f76451b6242c4",
    "forms/whole.md": "e13d98cdda3eebb179ef11af8b307f1811be04c34aa40272338b9794eceb9e77",
    "improve/plan.md": "aee66989fec64aafc2e6dbe287da38da881d6d797f176a1e6cf80132a365782c",
    "patch.md": "db6754ff76ed84851e1c646811990f77ceb7d8304cb74818652e4247cd1c7ddc",
    "plan.md": "58eb45119bb662a58e5ee61497676b828a56932af0c7e8a0ca0497ebd01ae493",
    "reflect.md": "0724e326c4dcfab22112b5046db5cc81d2c7fe59c989a344387e356dc60096eb",
    "remember.md": "d842e9ea5f5bb74240dc43178605c9399598ad30c1db8cb860a9687ad9eeb9c3",
    "reproduce.md": "0c7aded4387b69845b2121e3b517453886f74a941f989f407edd5457b1d102c2",
    "session/create.md": "6bdd437258e2e18d318c7e2ed239a0a91a7f00e9daa3e368f96b64e668e377ef",
    "session/patch.md": "8a772cf5eebdc136f33388b4f4770f70a67ebccc90ca518c001eab43d09c1b9a",
    "session/reproduce.md": "e725b13bfce9040fa8341c3d8c7c93e22ecdccab195527ce4ed96d401b19c37c",
}
"""Of each question under `toolkit/prompts/questions`. Change one only together with a paired test of the new prompt."""


def test_questions_match_the_measured_bytes() -> None:
    folder = Path(redstart.toolkit.prompts.__file__).parent / "questions"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.md")}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()} == SHA256
