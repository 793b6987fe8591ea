"""Injected secrets and identifiers: none of the former, at most one in fifty of the latter passes, in linear time."""

from __future__ import annotations

import base64
import json
import time

import pytest
from mps_build.common.scrubbing.identifiers import IDENTIFIERS, Identity
from mps_build.common.scrubbing.scrubber import Scrubber
from mps_build.common.scrubbing.secrets import SECRETS
from rows import for_each

IDENTITY = Identity(words={"jdoe": ("user name", "user"), "Janes-Mac": ("host name", "mac.local")})
BODY = "\n".join(
    base64.b64encode(bytes((index * 37 + offset * 101) % 256 for offset in range(48))).decode() for index in range(20)
)
X = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6uX9"

# A line, and what of it must not pass; written from the services' documentation, not from the rules.
INJECTED = {
    "rsa_key": (f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----", BODY[:40]),
    "openssh_key": (f"-----BEGIN OPENSSH PRIVATE KEY-----\n{BODY}\n-----END OPENSSH PRIVATE KEY-----", BODY[200:240]),
    "encrypted_key": (
        f"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n{BODY}\n"
        "-----END RSA PRIVATE KEY-----",
        BODY[100:140],
    ),
    "key_without_end": (f"-----BEGIN PRIVATE KEY-----\n{BODY}", BODY[-40:]),
    "key_without_beginning": (f"{BODY}\n-----END PRIVATE KEY-----", BODY[300:340]),
    "key_in_json": ("key = '-----BEGIN PRIVATE KEY-----\\n" + BODY.replace("\n", "\\n") + "'", BODY[:40]),
    "pgp_key": (
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{BODY}\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----",
        BODY[:40],
    ),
    "curl_u": ("curl -u deploy:hunter2pass https://example.org", "hunter2pass"),
    "curl_user": ("curl --user deploy:hunter2pass https://example.org", "hunter2pass"),
    "curl_glued": ("curl -udeploy:hunter2pass https://example.org", "hunter2pass"),
    "curl_header_glued": ("curl '-HAuthorization: Bearer hunter2pass' https://example.org", "hunter2pass"),
    "shell_quotes_each_word": ("+ twine upload '--token' 'hunter2pass'", "hunter2pass"),
    "list_over_lines": ('[\n "curl",\n "-udeploy:hunter2pass",\n "https://example.org"\n]', "hunter2pass"),
    "curl_in_a_list_of_python": ("ran ['curl', '--oauth2-bearer', 'hunter2pass', 'x']", "hunter2pass"),
    "pair_of_python": ("headers [('Authorization', 'Bearer hunter2pass')]", "hunter2pass"),
    "login_glued_in_a_list": ("['mysql', '-u', 'root', '-phunter2pass']", "hunter2pass"),
    "yaml_block": ("password: >-\n  hunter2pass\n", "hunter2pass"),
    "xml": ("<server><password>hunter2pass</password></server>", "hunter2pass"),
    "property_list": ("<key>DEPLOY_TOKEN</key>\n\t<string>hunter2pass</string>", "hunter2pass"),
    "keychain": ('password: 0x5A71  "hunter2pass"', "hunter2pass"),
    "fish": ("set -gx HF_TOKEN hunter2pass", "hunter2pass"),
    "launchctl": ("launchctl setenv GITHUB_TOKEN hunter2pass", "hunter2pass"),
    "aws_configure": ("aws configure set aws_secret_access_key hunter2pass", "hunter2pass"),
    "question": ("Password for 'https://me@example.org': hunter2pass", "hunter2pass"),
    "value_before_its_name": ('{"value": "hunter2pass",\n "name": "API_TOKEN"}', "hunter2pass"),
    "netrc_default": ("default login deploy password hunter2pass", "hunter2pass"),
    "netrc_account": ("machine a.org login deploy account x password hunter2pass", "hunter2pass"),
    "scp": ("git clone deploy:hunter2pass@example.org:a/b", "hunter2pass"),
    "conda": ("https://conda.example.org/t/hunter2pass/me/noarch", "hunter2pass"),
    "sudo": ("echo hunter2pass | sudo -S installer -pkg x", "hunter2pass"),
    "sshpass_variable": ("SSHPASS=hunter2pass", "hunter2pass"),
    "option_token": ("twine upload --token hunter2pass dist/*", "hunter2pass"),
    "option_token_equals": ("tool --token=hunter2pass", "hunter2pass"),
    "option_password": ("mysql --password hunter2pass", "hunter2pass"),
    "option_api_key": ("tool --api-key 'hunter2 pass'", "hunter2"),
    "option_secret": ("tool --client-secret hunter2pass", "hunter2pass"),
    "json_secret_key": ('"SECRET_KEY": "hunter2pass"', "hunter2pass"),
    "json_secret_with_spaces": ('{"secret": "hunter2 and pass"}', "and pass"),
    "python_dict": ("{'aws_secret_access_key': 'hunter2pass'}", "hunter2pass"),
    "environment": ("export DATABASE_PASSWORD=hunter2pass", "hunter2pass"),
    "environment_pass": ("SMTP_PASS=hunter2pass", "hunter2pass"),
    "yaml": ("  api_key: hunter2pass", "hunter2pass"),
    "passphrase": ("Passphrase = hunter2pass", "hunter2pass"),
    "azure_account_key": (f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={X}{X}==;EndpointSuffix=c", X),
    "azure_sas": (f"https://a.blob.core.windows.net/b?sv=2024&sig={X}%3D", X),
    "s3_presigned": (f"https://b.s3.amazonaws.com/k?X-Amz-Signature={X}&x=1", X),
    "npm": (f"npm_{X[:36]}", X[:36]),
    "npmrc": (f"//registry.npmjs.org/:_authToken=npm_{X[:36]}", X[:36]),
    "npmrc_legacy": (f"//registry.example.org/:_auth={X}", X),
    "github": (f"ghp_{X[:36]}", X[:36]),
    "github_fine": (f"github_pat_11ABCDEFG0{X}_{X}", X),
    "gitlab": (f"glpat-{X[:20]}", X[:20]),
    "pypi": (f"pypi-AgEIcHlwaS5vcmc{X}{X}", X),
    "hugging_face": (f"hf_{X[:34]}", X[:34]),
    "openai": (f"sk-proj-{X}", X),
    "slack": ("xoxb-123456789012-1234567890123-abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwx"),
    "slack_webhook": (f"https://hooks.slack.com/services/T0000/B0000/{X[:24]}", X[:24]),
    "aws_id": ("AKIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    "aws_temporary": ("ASIAIOSFODNN7EXAMPLE", "IOSFODNN7"),
    "google": (f"AIza{X[:35]}", X[:35]),
    "stripe": (f"sk_live_{X[:24]}", X[:24]),
    "sendgrid": (f"SG.{X[:22]}.{X}abcd", X[:22]),
    "docker": (f"dckr_pat_{X[:27]}", X[:27]),
    "docker_config": (f'"auths": {{"r.io": {{"auth": "{X}"}}}}', X),
    "telegram": (f"1234567890:{X[:35]}", X[:35]),
    "jwt": (f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.{X}", X),
    "bearer": (f"Authorization: Bearer {X}", X),
    "bearer_in_json": (f'"Authorization": "Bearer {X}"', X),
    "basic": (f"> authorization: Basic {X}==", X),
    "cookie": (f"Cookie: session={X}; theme=dark; id=hunter2pass", "hunter2pass"),
    "set_cookie": (f"< Set-Cookie: sid={X}; Path=/; HttpOnly", X),
    "session_id": (f"sessionid={X}", X),
    "url_password": ("https://deploy:hunter2pass@index.example.org/simple", "hunter2pass"),
    "url_token": ("https://hunter2pass@github.com/x/y.git", "hunter2pass"),
    "buildkite": (f"bkua_{X}", X),
    "nvidia": (f"nvapi-{X}", X),
    "docker_organisation": (f"dckr_oat_{X}", X),
    "vault": (f"vault: s.{X[:24]}", X[:24]),
    "discord_webhook": (f"https://discord.com/api/webhooks/123456789012345678/{X}", X),
    "token_in_a_sentence": (f"the token is {X}", X),
    "token_as_a_word": (f"wrote token {X}", X),
    "password_in_a_sentence": ("the password is hunter2pass", "hunter2pass"),
    "list_of_python": ("run ['twine', 'upload', '--token', 'hunter2 pass']", "pass'"),
    "list_of_json_within_json": (r'"log": "[\"tool\", \"-p\", \"hunter2pass\"]', "hunter2pass"),
    "pair_of_objects": ('[{"name": "API_TOKEN", "value": "hunter2pass"}', "hunter2pass"),
    "short_option": ("docker login -u deploy -p hunter2pass registry.example.org", "hunter2pass"),
    "short_option_glued": ("mysql -phunter2pass db", "hunter2pass"),
    "comma_in_a_value": ("export API_TOKEN=hunter2,pass", ",pass"),
    "quote_in_a_value": (r'"token": "hunter\"2pass", x', "2pass"),
    "quote_in_json_within_json": (r'"x": "{\"token\": \"hunter2pass\"}', "hunter2pass"),
    "camel_case": ('"accessToken": "hunter2pass"', "hunter2pass"),
    "personal_access_token": ("AZURE_DEVOPS_EXT_PAT=hunter2pass", "hunter2pass"),
    "pwd": ("MYSQL_PWD=hunter2pass", "hunter2pass"),
    "netrc": ("machine example.org login deploy password hunter2pass", "hunter2pass"),
}
IDENTIFYING = {
    "ipv4": ("connect to 203.0.113.77 port 443", "203.0.113.77"),
    "ipv4_private": ("inet 192.168.178.23 netmask 0xffffff00", "192.168.178.23"),
    "ipv4_ten": ("host=10.11.12.13:8080", "10.11.12.13"),
    "ipv4_url": ("http://172.20.3.4/simple", "172.20.3.4"),
    "ipv6": ("inet6 2001:db8:85a3::8a2e:370:7334 prefixlen 64", "2001:db8"),
    "ipv6_full": ("[2a02:8109:9c40:1234:5678:9abc:def0:1111]:443", "2a02:8109"),
    "ipv6_link": ("fe80::1c2b:3dff:fe4e:5f60%en0", "1c2b"),
    "ipv6_local": ("fd12:3456:789a:1::1", "fd12:3456"),
    "local_name": ("Connecting to Janes-MacBook-Pro.local", "Janes"),
    "local_server": ("http://buildserver.local:8080/", "buildserver"),
    "lan_name": ("nas.lan is up", "nas.lan"),
    "macbook": ("jane@Janes-MacBook-Air ~ %", "Janes"),
    "apostrophe": ("Jane's MacBook Pro", "Jane"),
    "volume": ("/Volumes/JaneBackup/torch/a.mm:3: error", "JaneBackup"),
    "volume_with_space": ("/Volumes/Jane Backup/torch", "Jane Backup"),
    "volume_alone": ("mounted at /Volumes/JaneBackup", "JaneBackup"),
    "windows_home": ("C:\\Users\\janedoe\\torch", "janedoe"),
    "windows_home_json": ('"C:\\\\Users\\\\janedoe\\\\torch"', "janedoe"),
    "windows_home_slashes": ("C:/Users/janedoe/torch", "janedoe"),
    "mac_home": ("/Users/janedoe/torch/a.cpp", "janedoe"),
    "linux_home": ("/home/janedoe/torch", "janedoe"),
    "user_in_file_name": ("wrote build-jdoe.log", "jdoe"),
    "user_in_file_name_underscore": ("jdoe_notes.txt", "jdoe"),
    "user_beside_digits": ("run2026jdoe01.log", "jdoe"),
    "user_in_camel_case": ("jdoeBuild.log", "jdoe"),
    "user_in_capitals": ("/opt/JDOE/x", "JDOE"),
    "scp_address": ("git@github.com:acme/secret-project.git", "secret-project"),
    "scp_short_host": ("git@host:acme/secret-project", "acme"),
    "rsync": ("deploy@build.example.org:/srv/wheels", "srv/wheels"),
    "mail": ("Jane Doe <jane.doe@example.com>", "jane.doe"),
    "hardware_address": ("ether a4:83:e7:12:34:56", "a4:83"),
    "hardware_address_dashes": ("a4-83-e7-12-34-56", "a4-83"),
    "serial": ("Serial Number (system): C02XG2JHJGH5", "C02XG2"),
    "serial_ioreg": ('"IOPlatformSerialNumber" = "C02XG2JHJGH5"', "C02XG2"),
    "uuid": ("Hardware UUID: 564D1234-5678-9ABC-DEF0-123456789ABC", "564D1234"),
    "udid": ("Provisioning UDID: 00008103-001234567890001E", "001234567890001E"),
    "computer_name": ("Computer Name: Jane's Mac", "Jane"),
    "ssid": ("  SSID: JaneHome", "JaneHome"),
    "uname": ("Darwin Janes-Mac.fritz.box 24.1.0 Darwin Kernel", "Janes"),
    "host_word": ("on Janes-Mac now", "Janes"),
    "ssh_key_comment": (f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAA{X} jane@work", "jane@work"),
    "user_with_a_dot": ("USER=john.smith", "smith"),
    "user_with_a_dot_in_json": ('"username": "john.smith"', "smith"),
    "user_logged_in": ("logged in as john.smith", "smith"),
    "user_of_id": ("uid=501(john.smith) gid=20(staff)", "smith"),
    "user_of_a_file": ("drwxr-xr-x  5 john.smith  staff  160 Nov  1 10:00 build", "smith"),
    "user_of_a_home_elsewhere": ("/Users/john.smith/pt\ncompiled by john.smith", "by john"),
    "prompt": ("john.smith@studio7 torch % make", "studio7"),
    "host_variable": ("x HOSTNAME=studio7", "studio7"),
    "runner_name": ("Runner name: 'studio7'", "studio7"),
    "node_name": ("uname_result(sysname='Darwin', nodename='studio7', release='24')", "studio7"),
    "host_of_uname_elsewhere": ("Darwin studio7 24.0.0 Darwin Kernel\nbuilt on studio7", "on studio7"),
    "host_of_bonjour_elsewhere": ("ping studio7.local\nstudio7 is up", "studio7"),
    "host_refused": ("ssh: connect to host studio7 port 22", "studio7"),
    "host_of_the_system_log": ("Nov  1 10:00:00 studio7 kernel[0]: x", "studio7"),
    "ipv4_of_a_user": ("ssh jdoe@192.168.1.17", "192.168"),
    "ipv4_of_netstat": ("tcp4  0 0  192.168.1.17.52011  ESTABLISHED", "192.168"),
    "ipv4_in_a_name": ("ip-10-0-1-23.ec2.internal", "10-0-1"),
    "smb_share": ("//jane@nas.example.org/backup on /Volumes/x", "jane@nas"),
}
STAYS = (
    "clang++ -O2 -DUSE_MPS=1 -std=c++17 a.cpp -o a.o",
    "error: expected unqualified-id near token ';'",
    "tokenizers==0.20.3",
    "processed 512 tokens: 3.2 s, tokens/s=160",
    "at::mps::mm(at::Tensor const&) std::make_pair c10::add::fe",
    "Apple clang version 17.0.0 (clang-1700.0.13.5)",
    "ld-1167.5, SDK 15.4, Xcode 16.3 (16E140), macOS 15.4.1 (24E263)",
    "Requirement already satisfied: pip==25.0.1.1",
    "commit 1eba9b3aa3c43f86f4a2c807ac8e12c4a7767340",
    "sha256:9b2f1a4d8c7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a",
    "12:34:56 [1234/5678] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/x.cpp.o",
    "https://github.com/pytorch/pytorch/issues/12345",
    "/usr/local/bin:/opt/homebrew/bin:/Volumes/Macintosh HD/usr",
    "python -u setup.py bdist_wheel",
    "__ZN2at6native12_GLOBAL__N_115passwordlessE",
    "127.0.0.1:8080 0.0.0.0 ::1",
    "Could not resolve host: github.com",
    "nvidia-curand-cu12==10.3.5.147",
    "real 1m2s user=0.52 owner: 0",
    "checking host system type... aarch64-apple-darwin24",
    "uses: actions/checkout@v4",
    "the token is missing",
    "pad_token_id: 0, token_type_ids: torch.int64",
    "3 unexpected_pass: 2 known",
    "from huggingface_hub import hf_hub_download",
    "PWD=/opt/torch OLDPWD=/opt",
    "npm_config_cache=/tmp/x sk-learn-contrib",
    "-mllvm -pass-remarks=loop",
    "enter password is required",
    "CMAKE_OSX_DEPLOYMENT_TARGET:STRING=11.0",
)


@for_each(INJECTED)
def test_no_injected_secret_passes(kind: str) -> None:
    line, secret = INJECTED[kind]
    scrubber = Scrubber(IDENTITY)
    clean = scrubber.text(f"before\n{line}\nafter\n")
    assert secret not in clean
    assert clean.startswith("before\n")
    assert clean.rstrip().endswith("after") or "without_end" in kind
    assert scrubber.text(clean) == clean


@for_each(INJECTED)
def test_no_injected_secret_passes_as_json(kind: str) -> None:
    line, secret = INJECTED[kind]
    document = {"log": [line], line: 1}
    assert json.dumps(secret)[1:-1] not in json.dumps(Scrubber(IDENTITY).value(document))


def test_at_most_one_identifier_in_fifty_passes() -> None:
    passed = {
        kind: clean for kind, (line, word) in IDENTIFYING.items() if word in (clean := Scrubber(IDENTITY).text(line))
    }
    assert len(passed) * 50 <= len(IDENTIFYING), passed


@for_each(IDENTIFYING)
def test_a_second_pass_finds_nothing(kind: str) -> None:
    clean = Scrubber(IDENTITY).text(IDENTIFYING[kind][0])
    assert Scrubber(IDENTITY).text(clean) == clean


@for_each(STAYS)
def test_what_a_log_needs_stays(line: str) -> None:
    assert Scrubber(IDENTITY).text(line) == line


WORST = (
    "a" * 250_000,
    "a." * 125_000,
    "a-" * 125_000,
    "://" * 80_000,
    "//a" * 80_000,
    "eyJ" * 80_000,
    "@" * 250_000,
    "a@" * 125_000,
    "password" * 30_000,
    "-token" * 40_000,
    "_auth" * 50_000,
    "--pass-" * 35_000,
    " " * 250_000,
    "password" + " " * 250_000,
    "\n" * 250_000,
    "serial number" * 20_000,
    "-----BEGIN PRIVATE KEY-----" * 9_000,
    "A" * 64 + "\n" + "A" * 250_000,
    "1.1.1." * 40_000,
    "fe80:" * 50_000,
    "machine a " * 25_000,
    "/Volumes/" * 28_000,
    "\\Users\\" * 30_000,
    "authorization=" * 18_000,
    "ghp_" * 60_000,
    "user=" * 50_000,
    "a@b c" * 50_000,
    "token is " * 30_000,
    '"auth":' * 35_000,
    "aws" * 80_000,
    "xoxb-1-" * 35_000,
    "['a', " * 40_000,
    "[" + "'-a', " * 40_000,
    """["['""" * 60_000,
    "[ " * 120_000,
    "<password>" * 25_000,
    "<key>token</key> " * 15_000,
    "set a_" * 40_000,
    "token for " * 25_000,
    '"value":"' * 28_000,
    "a:b@c." * 40_000,
    "token: |\n " * 25_000,
)


# A tenth of each is still 25,000 characters.
@pytest.mark.parametrize("part", [10, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("line", WORST, ids=lambda line: repr(line[:24]))
def test_a_long_line_takes_linear_time(line: str, part: int) -> None:
    def cost(characters: int) -> float:
        began = time.process_time()
        Scrubber(IDENTITY).text(line[-characters:])
        return time.process_time() - began

    Scrubber(IDENTITY).text("warm")
    size = len(line) // part
    # Four times as long: sixteen times as dear where a rule goes over the whole for each of its parts.
    assert cost(size) < 9 * max(cost(size // 4), 0.02)


# Names of files, what of them must not pass, and names that say nothing of the kind.
IN_FILE_NAMES = {
    "glued": (f"authToken{X}.log", X),
    "glued_hexadecimal": ("run-secret9f86d081884c7d65.txt", "9f86d081"),
    "glued_word": ("apikeyhunter2pass.json", "hunter2pass"),
    "glued_capitals": ("PASSWORDTr0ub4dor3.log", "Tr0ub4dor3"),
    "glued_to_a_prefix": (f"authTokenghp_{X[:36]}.log", X[:36]),
    "address": (f"https:__u:{X}@h.log", X),
    "address_without_colon": ("https___deploy:hunter2pass@index.example.org_simple.log", "hunter2pass"),
    "address_one_underscore": ("ftp:_deploy:hunter2pass@h.txt", "hunter2pass"),
    "address_encoded": ("https%3A%2F%2Fdeploy%3Ahunter2pass%40h.log", "hunter2pass"),
    "address_of_git": ("git+https--hunter2pass@github.com.log", "hunter2pass"),
}
ORDINARY_NAMES = (
    "authTokenRefreshV2Test.log",
    "tokenRefresh2.log",
    "passwordReset2025.log",
    "tokenmixer4x4.log",
    "tokenmerging8bit.log",
    "tokenizer3b-eval.log",
    "secretsManagerTest10.json",
    "apiKeyJSONTest2.xml",
    "icon__large@2x.png",
    "ssh-agent@2.log",
    "https_server__0.log",
    "build__cp312-macosx_14_0_arm64.whl",
)


@for_each(IN_FILE_NAMES)
def test_no_secret_passes_in_the_name_of_a_file(kind: str) -> None:
    name, secret = IN_FILE_NAMES[kind]
    clean = Scrubber().name(f"logs/{name}")

    assert secret not in clean + Scrubber(IDENTITY).name(name)
    assert clean.startswith("logs/")
    assert clean.rpartition(".")[2] == name.rpartition(".")[2]
    assert Scrubber().name(clean) == clean


@for_each(ORDINARY_NAMES)
def test_an_ordinary_name_of_a_file_stays(name: str) -> None:
    assert Scrubber().name(name) == name


def test_whose_home_is_named_is_named_nowhere() -> None:
    scrubber = Scrubber(Identity(words={}))
    scrubber.text("clang: /Users/jfrog42/torch/a.mm")
    scrubber.text("C:\\Users\\Zelda\\torch")
    assert scrubber.text("build-jfrog42.log of ZELDA, torch.log") == "build-user.log of user, torch.log"


def test_every_rule_takes_something_out() -> None:
    """A rule that nothing injected needs is one that nobody knows to work."""
    lines = [line for line, _ in (*INJECTED.values(), *IDENTIFYING.values())]
    idle = [pattern.pattern for _, pattern, *_ in (*SECRETS, *IDENTIFIERS) if not any(map(pattern.search, lines))]
    assert not idle
