// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import {BeaconWorld} from "./BeaconWorld.sol";
import {BlsG1} from "../contracts/libraries/BlsG1.sol";

/// The library as a contract, so that it reads calldata and its errors can be compared.
contract BlsReader {
    function field(bytes calldata message, bytes calldata domain) external view returns (bytes memory, bytes memory) {
        return BlsG1.hashToField(message, domain);
    }

    function point(bytes calldata message, bytes calldata domain) external view returns (bytes memory) {
        return BlsG1.hashToCurve(message, domain);
    }

    function signs(
        bytes calldata s,
        bytes calldata message,
        bytes calldata domain,
        bytes calldata key
    ) external view returns (bool) {
        return BlsG1.signs(s, message, domain, key);
    }

    function compressed(bytes calldata signature) external pure returns (bytes memory) {
        return BlsG1.compressed(signature);
    }
}

/// Signatures in G1: against the vectors of RFC 9380, against keys made here, and against points that are none.
contract BlsTest is BeaconWorld {
    bytes private constant DOMAIN = "test domain";
    bytes private constant G2 =
        hex"00000000000000000000000000000000024aa2b2f08f0a91260805272dc51051c6e47ad4fa403b02b4510b647ae3d1770bac0326a805bbefd48056c8c121bdb8"
        hex"0000000000000000000000000000000013e02b6052719f607dacd3a088274f65596bd0d09920b61ab5da61bbdc7f5049334cf11213945d57e5ac7d055d042b7e"
        hex"000000000000000000000000000000000ce5d527727d6e118cc9cdc6da2e351aadfd9baa8cbdd3a76d429a695160d12c923ac9cc3baca289e193548608b82801"
        hex"000000000000000000000000000000000606c4a02ea734cc32acd2b02bc28b99cb3e287e85a763af267492ab572e99ab3f370d275cec1da1aaa9075ff05f79be";
    uint256 private constant ORDER = 0x73eda753299d7d483339d80809a1d80553bda402fffe5bfeffffffff00000001;

    BlsReader private reader;

    function setUp() public override {
        super.setUp();
        reader = new BlsReader();
    }

    function hashes(bytes memory message, bytes memory u, bytes memory v, bytes memory x, bytes memory y) private view {
        bytes memory domain = "QUUX-V01-CS02-with-BLS12381G1_XMD:SHA-256_SSWU_RO_";
        (bytes memory haveU, bytes memory haveV) = reader.field(message, domain);
        eq(keccak256(haveU), keccak256(bytes.concat(bytes16(0), u)), "u[0]");
        eq(keccak256(haveV), keccak256(bytes.concat(bytes16(0), v)), "u[1]");
        eq(keccak256(reader.point(message, domain)), keccak256(bytes.concat(bytes16(0), x, bytes16(0), y)), "P");
    }

    function repeated(bytes memory start, bytes1 letter, uint256 count) private pure returns (bytes memory message) {
        message = bytes.concat(start, new bytes(count));
        for (uint256 i = start.length; i < message.length; ++i) message[i] = letter;
    }

    /// RFC 9380, appendix J.9.1.
    function test_messages_hash_to_the_points_of_the_standard() public view {
        hashes(
            "",
            hex"0ba14bd907ad64a016293ee7c2d276b8eae71f25a4b941eece7b0d89f17f75cb3ae5438a614fb61d6835ad59f29c564f",
            hex"019b9bd7979f12657976de2884c7cce192b82c177c80e0ec604436a7f538d231552f0d96d9f7babe5fa3b19b3ff25ac9",
            hex"052926add2207b76ca4fa57a8734416c8dc95e24501772c814278700eed6d1e4e8cf62d9c09db0fac349612b759e79a1",
            hex"08ba738453bfed09cb546dbb0783dbb3a5f1f566ed67bb6be0e8c67e2e81a4cc68ee29813bb7994998f3eae0c9c6a265"
        );
        hashes(
            "abc",
            hex"0d921c33f2bad966478a03ca35d05719bdf92d347557ea166e5bba579eea9b83e9afa5c088573c2281410369fbd32951",
            hex"003574a00b109ada2f26a37a91f9d1e740dffd8d69ec0c35e1e9f4652c7dba61123e9dd2e76c655d956e2b3462611139",
            hex"03567bc5ef9c690c2ab2ecdf6a96ef1c139cc0b2f284dca0a9a7943388a49a3aee664ba5379a7655d3c68900be2f6903",
            hex"0b9c15f3fe6e5cf4211f346271d7b01c8f3b28be689c8429c85b67af215533311f0b8dfaaa154fa6b88176c229f2885d"
        );
        hashes(
            "abcdef0123456789",
            hex"062d1865eb80ebfa73dcfc45db1ad4266b9f3a93219976a3790ab8d52d3e5f1e62f3b01795e36834b17b70e7b76246d4",
            hex"0cdc3e2f271f29c4ff75020857ce6c5d36008c9b48385ea2f2bf6f96f428a3deb798aa033cd482d1cdc8b30178b08e3a",
            hex"11e0b079dea29a68f0383ee94fed1b940995272407e3bb916bbf268c263ddd57a6a27200a784cbc248e84f357ce82d98",
            hex"03a87ae2caf14e8ee52e51fa2ed8eefe80f02457004ba4d486d6aa1f517c0889501dc7413753f9599b099ebcbbd2d709"
        );
        hashes(
            repeated("q128_", "q", 128),
            hex"010476f6a060453c0b1ad0b628f3e57c23039ee16eea5e71bb87c3b5419b1255dc0e5883322e563b84a29543823c0e86",
            hex"0b1a912064fb0554b180e07af7e787f1f883a0470759c03c1b6509eb8ce980d1670305ae7b928226bb58fdc0a419f46e",
            hex"15f68eaa693b95ccb85215dc65fa81038d69629f70aeee0d0f677cf22285e7bf58d7cb86eefe8f2e9bc3f8cb84fac488",
            hex"1807a1d50c29f430b8cafc4f8638dfeeadf51211e1602a5f184443076715f91bb90a48ba1e370edce6ae1062f5e6dd38"
        );
        hashes(
            repeated("a512_", "a", 512),
            hex"0a8ffa7447f6be1c5a2ea4b959c9454b431e29ccc0802bc052413a9c5b4f9aac67a93431bd480d15be1e057c8a08e8c6",
            hex"05d487032f602c90fa7625dbafe0f4a49ef4a6b0b33d7bb349ff4cf5410d297fd6241876e3e77b651cfc8191e40a68b7",
            hex"082aabae8b7dedb0e78aeb619ad3bfd9277a2f77ba7fad20ef6aabdc6c31d19ba5a6d12283553294c1825c4b3ca2dcfe",
            hex"05b84ae5a942248eea39e1d91030458c40153f3b654ab7872d779ad1e942856a20c438e8d99bc8abfbf74729ce1f7ac8"
        );
    }

    /// Round 20905307 of drand's quicknet, hashed: randa-mu/bls-solidity, test/data/drand_quicknet.json.
    function test_a_drand_round_hashes_to_the_published_point() public view {
        bytes memory message = abi.encodePacked(sha256(abi.encodePacked(uint64(20_905_307))));
        bytes memory point = reader.point(message, "BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_");
        bytes memory expected =
            hex"01785306ff8d502fc0c90bd175d2c74cfe6906f3196f7db7026af3344c65fd6ad5c32a5ae541d17c9d9643c74b2799d9"
            hex"09c6ff272912edc97e93772adf5f84760aff5754019c11037964aacb782022fc83c386fc6abafc3707e25c11437af908";
        eq(keccak256(packed(point)), keccak256(expected), "the point");
    }

    /// A scalar multiple of a point, by the precompile of its group.
    function times(
        address precompile,
        bytes memory point,
        uint256 scalar
    ) private view returns (bytes memory multiple) {
        bool done;
        (done, multiple) = precompile.staticcall(abi.encodePacked(point, scalar));
        yes(done && multiple.length == point.length, "multiplied");
    }

    /// `x || y` without the padding.
    function packed(bytes memory point) private pure returns (bytes memory short) {
        short = new bytes(96);
        for (uint256 i; i < 48; ++i) (short[i], short[48 + i]) = (point[16 + i], point[80 + i]);
    }

    function test_a_key_signs_its_message_and_no_other(uint256 secret, bytes calldata message) public view {
        secret = bound(secret, 1, ORDER - 2);
        bytes memory key = times(address(0x0e), G2, secret);
        bytes memory signature = packed(times(address(0x0c), reader.point(message, DOMAIN), secret));
        yes(reader.signs(signature, message, DOMAIN, key), "its own");
        yes(!reader.signs(signature, bytes.concat(message, hex"00"), DOMAIN, key), "another message");
        yes(!reader.signs(signature, message, "another domain", key), "another domain");
        yes(!reader.signs(signature, message, DOMAIN, times(address(0x0e), G2, secret + 1)), "another key");
        bytes memory opposite = packed(times(address(0x0c), reader.point(message, DOMAIN), ORDER - secret));
        yes(!reader.signs(opposite, message, DOMAIN, key), "the other y");
    }

    function test_points_outside_the_group_sign_nothing() public view {
        bytes memory key = times(address(0x0e), G2, 7);
        bytes memory x = abi.encodePacked(bytes16(0), uint256(4)); // (4, …) lies on the curve, not in the subgroup
        bytes memory y =
            hex"0a989badd40d6212b33cffc3f3763e9bc760f988c9926b26da9dd85e928483446346b8ed00e1de5d5ea93e354abe706c";
        (bool onCurve, ) = address(0x0b).staticcall(
            bytes.concat(bytes16(0), x, bytes16(0), y, bytes16(0), x, bytes16(0), y)
        );
        yes(onCurve, "addition, which checks no subgroup, takes it");
        yes(!reader.signs{gas: 300_000}(bytes.concat(x, y), "m", DOMAIN, key), "not in the subgroup");
        yes(!reader.signs{gas: 300_000}(bytes.concat(x, x), "m", DOMAIN, key), "not on the curve");
        yes(!reader.signs{gas: 300_000}(new bytes(96), "m", DOMAIN, key), "at infinity");
    }

    function test_compression_tells_the_larger_y() public view {
        bytes memory x = abi.encodePacked(bytes16(uint128(0x11)), uint256(0x22));
        uint128 high = 0x0d0088f51cbff34d258dd3db21a5d66b;
        uint256 low = 0xb23ba5c279c2895fb39869507b587b120f55ffff58a9ffffdcff7fffffffd555;
        flagged(x, high, low, 0x80); // (p - 1) / 2
        flagged(x, high, low + 1, 0xa0); // (p + 1) / 2, its negative
        flagged(x, high - 1, type(uint256).max, 0x80);
        flagged(x, high + 1, 0, 0xa0);
        flagged(x, 0, 1, 0x80);
    }

    function flagged(bytes memory x, uint128 high, uint256 low, uint8 flags) private view {
        bytes memory short = reader.compressed(abi.encodePacked(x, high, low));
        x[0] |= bytes1(flags);
        eq(keccak256(short), keccak256(x), "x with its flags");
    }

    function test_a_chain_without_the_precompiles_proves_nothing() public {
        address[3] memory used = [address(0x05), address(0x10), address(0x0b)];
        for (uint256 i; i < 3; ++i) {
            cheat.mockCall(used[i], "", ""); // as a call to an account without code
            bytes memory error = abi.encodeWithSelector(BlsG1.PrecompileFailed.selector, used[i]);
            refused(ANYONE, address(reader), abi.encodeCall(reader.point, ("m", DOMAIN)), error);
            cheat.clearMockedCalls();
        }
        bytes memory key = times(address(0x0e), G2, 7);
        bytes memory signature = packed(times(address(0x0c), reader.point("m", DOMAIN), 7));
        yes(reader.signs(signature, "m", DOMAIN, key), "a signature");
        cheat.mockCall(address(0x0f), "", "");
        yes(!reader.signs(signature, "m", DOMAIN, key), "without a pairing");
        cheat.mockCall(address(0x0f), "", abi.encode(0));
        yes(!reader.signs(signature, "m", DOMAIN, key), "the pairing says no");
    }
}
